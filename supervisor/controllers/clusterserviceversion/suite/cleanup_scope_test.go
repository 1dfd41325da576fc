package suite_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// clusterScoped changes a definition to a cluster-scoped kind.
func clusterScoped(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	return crd
}

// weakGroup returns an OperatorGroup for the test's namespace that names an account without permissions.
func (w *world) weakGroup() (*operatorsv1.OperatorGroup, *corev1.ServiceAccount) {
	group := w.group("own", w.Namespace)
	group.Spec.ServiceAccountName = "weak"
	return group, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "weak"}}
}

// staysAlive fails if an object is gone or terminating.
func (w *world) staysAlive(objects ...*unstructured.Unstructured) {
	w.T.Helper()
	for _, o := range objects {
		w.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(o), o)).To(gomega.Succeed(), "%s of %s was deleted", o.GetName(), o.GetAPIVersion())
		w.Expect(o.GetDeletionTimestamp()).To(gomega.BeNil(), "%s of %s is being deleted", o.GetName(), o.GetAPIVersion())
	}
}

// left waits for the Event that names the remaining custom resources, and returns its note.
func (w *world) left() string {
	w.T.Helper()
	var note string
	w.Eventually(func(g gomega.Gomega) {
		var list eventsv1.EventList
		g.Expect(w.List(w.T.Context(), &list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		i := slices.IndexFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == "CustomResourcesLeft" })
		g.Expect(i).To(gomega.BeNumerically(">=", 0))
		note = list.Items[i].Note
	}).Should(gomega.Succeed())
	return note
}

// TestCleanUpSparesResourcesOfOthers has a version in a bounded group, with an account without
// permissions. It claims kinds that others brought or use, fails, and is deleted.
func TestCleanUpSparesResourcesOfOthers(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.supervise()
	vaults := w.serve(clusterScoped(fixtures.CRD("vaults.example.com", "Cup")))
	foreign := w.serve(fixtures.CRD("foreign.example.com", "Cup"))
	wide := clusterScoped(fixtures.CRD("wide.example.com", "Cup"))
	w.recordPlanOf(wide)
	w.serve(wide)
	objects := []*unstructured.Unstructured{
		cup(vaults.Spec.Group, "", "vault"), cup(foreign.Spec.Group, w.Namespace, "ours"), cup(wide.Spec.Group, "", "wide"),
	}
	for _, o := range objects {
		w.Create(o)
	}
	subscription := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "other"},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: "other", CatalogSource: "none", CatalogSourceNamespace: w.Namespace},
	}
	group, account := w.weakGroup()
	csv := w.kettle("kettle.v1", owns(vaults.Name), owns(foreign.Name), owns(wide.Name), cleans)
	csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned,
		operatorsv1alpha1.CRDDescription{Name: "subscriptions.operators.coreos.com", Version: "v1alpha1", Kind: "Subscription"})
	w.Create(group, account, subscription, csv)
	w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailedNoRetry)

	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)

	w.staysAlive(objects...)
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(subscription), subscription)).To(gomega.Succeed(), "the Subscription was deleted")
	w.Expect(subscription.DeletionTimestamp).To(gomega.BeNil())
	note := w.left()
	for _, name := range []string{vaults.Name, foreign.Name, wide.Name, "subscriptions.operators.coreos.com"} {
		w.Expect(strings.Contains(note, name)).To(gomega.BeTrue(), "%s does not name %s", note, name)
	}
}

// TestCleanUpRemovesTheRecordsOfAVersion deletes a version that an install plan brought a definition for.
// Later, a version of its name claims the definition. It did not bring it.
func TestCleanUpRemovesTheRecordsOfAVersion(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.supervise()
	crd := fixtures.CRD("records.example.com", "Cup")
	w.recordPlanOf(crd)
	crd.Annotations["operatorframework.io/installed-alongside-2"] = "elsewhere/kettle.v1"
	w.serve(crd)
	mine := cup(crd.Spec.Group, w.Namespace, "mine")
	csv := w.kettle("kettle.v1", owns(crd.Name))
	w.Create(w.group("own", w.Namespace), csv, mine)
	w.succeeds("kettle.v1")

	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)

	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
	w.Expect(crd.Annotations).To(gomega.Equal(map[string]string{"operatorframework.io/installed-alongside-2": "elsewhere/kettle.v1"}))

	csv = w.kettle("kettle.v1", owns(crd.Name), cleans)
	w.Create(csv)
	w.succeeds("kettle.v1")
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)
	w.staysAlive(mine)
}

// TestCleanUpHasTheRightsOfTheGroupsAccount checks that custom resources are deleted only as far as
// the account of the OperatorGroup may delete them.
func TestCleanUpHasTheRightsOfTheGroupsAccount(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.supervise()
	crd := w.tableware("accounts.example.com")
	mine, elsewhere := cup(crd.Spec.Group, w.Namespace, "mine"), cup(crd.Spec.Group, "default", w.Namespace)
	group, account := w.weakGroup()
	csv := w.kettle("kettle.v1", owns(crd.Name), cleans)
	w.Create(group, account, csv, mine, elsewhere)
	w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailedNoRetry)

	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())

	w.waits("as ServiceAccount weak of OperatorGroup own", `cannot delete resource "cups" in API group "accounts.example.com"`,
		"grant it this permission", "chandlery.dev/skip-cleanup=true")
	w.staysAlive(mine, elsewhere)

	in := metav1.ObjectMeta{Namespace: w.Namespace, Name: "weak"}
	w.Create(
		&rbacv1.Role{ObjectMeta: in, Rules: []rbacv1.PolicyRule{{APIGroups: []string{crd.Spec.Group}, Resources: []string{"cups"}, Verbs: []string{"delete"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: in, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "weak"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: "weak"}},
		})
	w.EventuallyGone(csv)
	w.EventuallyGone(mine)
	w.staysAlive(elsewhere)
	w.noGrantIsLeft()
}

// TestCleanUpOfClusterScopedKinds checks that cluster-scoped objects are deleted with an operator
// for all namespaces whose plan brought their definition.
func TestCleanUpOfClusterScopedKinds(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.supervise()
	crd := clusterScoped(fixtures.CRD("ours.example.com", "Cup"))
	w.recordPlanOf(crd)
	w.serve(crd)
	mine := cup(crd.Spec.Group, "", "mine")
	csv := w.kettle("kettle.v1", owns(crd.Name), cleans)
	w.Create(w.group("all"), csv, mine)
	w.succeeds("kettle.v1")

	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())

	w.EventuallyGone(csv)
	w.EventuallyGone(mine)
}
