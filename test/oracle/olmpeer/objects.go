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
	// Namespace is the namespace of OLM. Its CatalogSources serve Subscriptions of every namespace.
	Namespace = "olm"
	// Account is the user of both programs. They share a ServiceAccount, as in OLM's chart.
	Account = "system:serviceaccount:" + Namespace + ":" + serviceAccount

	serviceAccount = "olm-operator-serviceaccount"
	clusterRole    = "system:controller:operator-lifecycle-manager"
)

// createObjects creates the objects of OLM's chart except the Deployments. It does not change
// existing ones.
func createObjects(ctx context.Context, c client.Client) error {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}}
	for _, o := range append(objects, chartObjects()...) {
		if err := c.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// deleteObjects deletes the objects of createObjects except the namespace.
func deleteObjects(ctx context.Context, c client.Client) error {
	for _, o := range chartObjects() {
		if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
			return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// chartObjects returns the objects of OLM's chart except its namespace and the Deployments.
func chartObjects() []client.Object { return append(permissions(), operatorGroup(), config()) }

// permissions returns the ServiceAccount of the programs and its permissions.
func permissions() []client.Object {
	binding := "olm-operator-binding-" + Namespace
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: serviceAccount}},
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
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: serviceAccount}},
		},
	}
}

func operatorGroup() *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "olm-operators"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{Namespace}},
	}
}

func config() *operatorsv1.OLMConfig {
	return &operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
}
