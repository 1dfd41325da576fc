package suite_test

import (
	"strings"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// group returns a group that targets the given namespaces; all namespaces if there are none.
func group(namespace string, targets ...string) *operatorsv1.OperatorGroup {
	return fixtures.OperatorGroup(namespace, "group", targets...)
}

// operator returns a ClusterServiceVersion that provides kinds in the test's API group.
func (w *world) operator(namespace string, kinds ...string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle(namespace, "operator.v1")
	for _, kind := range kinds {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned,
			operatorsv1alpha1.CRDDescription{Name: w.crdName(kind), Version: "v1", Kind: kind})
	}
	return csv
}

// crdName returns the name of the CustomResourceDefinition of a kind.
func (w *world) crdName(kind string) string { return strings.ToLower(kind) + "s." + w.apiGroup() }
func (w *world) api(kind string) string     { return kind + ".v1." + w.apiGroup() }

// apiGroup returns an API group that is unique to the test.
func (w *world) apiGroup() string { return w.Namespace + ".example.com" }

// lamps creates the CustomResourceDefinition of the kind Lamp.
func (w *world) lamps() *apiextensionsv1.CustomResourceDefinition {
	w.T.Helper()
	crd := fixtures.CRD(w.apiGroup(), "Lamp")
	w.Create(crd)
	return crd
}

// succeed sets the phase of a ClusterServiceVersion to Succeeded.
func (w *world) succeed(csv *operatorsv1alpha1.ClusterServiceVersion) {
	w.T.Helper()
	csv.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded
	if err := w.Status().Update(w.T.Context(), csv); err != nil {
		w.T.Fatalf("writing the phase of %s: %v", csv.Name, err)
	}
}

// claims waits until a group has claimed exactly the given kinds.
func (w *world) claims(group *operatorsv1.OperatorGroup, kinds ...string) {
	w.T.Helper()
	apis := make([]string, len(kinds))
	for i, kind := range kinds {
		apis[i] = w.api(kind)
	}
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(group), group)).To(gomega.Succeed())
		g.Expect(group.Annotations["olm.providedAPIs"]).To(gomega.Equal(strings.Join(apis, ",")))
	})
}

// rolesOf returns the cluster roles of the groups in a namespace by level.
func (w *world) rolesOf(g gomega.Gomega, namespace string) map[string]*rbacv1.ClusterRole {
	var list rbacv1.ClusterRoleList
	g.Expect(w.List(w.T.Context(), &list, client.MatchingLabels{
		"olm.owner.kind": "OperatorGroup", "olm.owner.namespace": namespace,
	})).To(gomega.Succeed())
	roles := map[string]*rbacv1.ClusterRole{}
	for i := range list.Items {
		for _, level := range []string{"admin", "edit", "view"} {
			if strings.HasPrefix(list.Items[i].Name, "olm.og.group."+level+"-") {
				roles[level] = &list.Items[i]
			}
		}
	}
	return roles
}

func (w *world) role(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
