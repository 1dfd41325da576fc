package olmpeer

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Namespace is the namespace of OLM in its manifests. Its CatalogSources serve Subscriptions of every namespace.
	Namespace = "olm"
	// ChartNamespace is the namespace of OLM in its chart.
	ChartNamespace = "operator-lifecycle-manager"
	// Account is the user of both programs in Namespace. They share a ServiceAccount, as in OLM's chart.
	Account = "system:serviceaccount:" + Namespace + ":" + serviceAccount

	serviceAccount = "olm-operator-serviceaccount"
	clusterRole    = "system:controller:operator-lifecycle-manager"
)

// createObjects creates the objects of OLM's chart except the Deployments. It does not change
// existing ones.
func createObjects(ctx context.Context, c client.Client, namespace string) error {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	for _, o := range append(objects, chartObjects(namespace)...) {
		if err := c.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// deleteObjects deletes the objects of createObjects except the namespace.
func deleteObjects(ctx context.Context, c client.Client, namespace string) error {
	for _, o := range chartObjects(namespace) {
		if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
			return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// chartObjects returns the objects of OLM's chart except its namespace and the Deployments.
func chartObjects(namespace string) []client.Object {
	return append(permissions(namespace), operatorGroup(namespace), config())
}

// AccountIn returns the user of both programs of an OLM in a namespace.
func AccountIn(namespace string) string {
	return "system:serviceaccount:" + namespace + ":" + serviceAccount
}

// permissions returns the ServiceAccount of the programs and its permissions.
func permissions(namespace string) []client.Object {
	binding := "olm-operator-binding-" + namespace
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceAccount}},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: clusterRole},
			Rules: []rbacv1.PolicyRule{
				{
					APIGroups: []string{"*"}, Resources: []string{"*"},
					Verbs: []string{"watch", "list", "get", "create", "update", "patch", "delete", "deletecollection", "escalate", "bind"},
				},
				{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: binding},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: serviceAccount}},
		},
	}
}

func operatorGroup(namespace string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "olm-operators"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	}
}

func config() *operatorsv1.OLMConfig {
	return &operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
}
