package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// cupsOf returns the cups of a group in the test's namespace.
func (w *world) cupsOf(c client.Client, group string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "CupList"})
	err := c.List(w.T.Context(), list, client.InNamespace(w.Namespace))
	return list.Items, err
}

// noGrantIsLeft waits until there is no temporary grant.
func (w *world) noGrantIsLeft() {
	w.T.Helper()
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		w.Eventually(func(g gomega.Gomega) {
			g.Expect(w.List(w.T.Context(), list, client.HasLabels{api.LabelGrant})).To(gomega.Succeed())
			g.Expect(list).To(gomega.HaveField("Items", gomega.BeEmpty()))
		}).Should(gomega.Succeed())
	}
}

// TestCleansUpResourcesThatItMayNotList runs with the permissions of the supervisor in a cluster, which
// exclude custom resources.
func TestCleansUpResourcesThatItMayNotList(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.supervise()
	const group = "granted.example.com"
	crd := w.tableware(group)
	csv := w.kettle("kettle.v1", owns(crd.Name), cleans)
	w.Create(w.group("own", w.Namespace), csv, cup(group, w.Namespace, "one"), cup(group, w.Namespace, "two"))
	w.succeeds("kettle.v1")
	if _, err := w.cupsOf(w.ManagerClient(), group); !apierrors.IsForbidden(err) {
		t.Fatalf("the supervisor may list cups: %v", err)
	}
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)
	left, err := w.cupsOf(w.Client, group)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.Expect(left).To(gomega.BeEmpty())
	w.noGrantIsLeft()
	if _, err := w.cupsOf(w.ManagerClient(), group); !apierrors.IsForbidden(err) {
		t.Errorf("the right has not been revoked: %v", err)
	}
}

// TestOneThatIsNotDeletedDoesNotKeepTheOthers has a policy that refuses the deletion of one cup.
func TestOneThatIsNotDeletedDoesNotKeepTheOthers(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.supervise()
	const group = "minded.example.com"
	crd := w.tableware(group)
	policy, binding := minding(group)
	w.Create(policy, binding)
	w.Eventually(func() error {
		probe := cup(group, w.Namespace, "heirloom")
		_ = w.Client.Create(t.Context(), probe)
		return w.Delete(t.Context(), probe)
	}).Should(gomega.MatchError(gomega.ContainSubstring("it is an heirloom")))
	csv := w.kettle("kettle.v1", owns(crd.Name), cleans)
	w.Create(w.group("own", w.Namespace), csv, cup(group, w.Namespace, "one"), cup(group, w.Namespace, "two"))
	w.succeeds("kettle.v1")
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())

	w.waits(": 1 left, first Cup "+w.Namespace+"/heirloom", "it is an heirloom", "chandlery.dev/skip-cleanup=true")

	w.Expect(w.Delete(t.Context(), binding)).To(gomega.Succeed())
	w.EventuallyGone(csv)
	w.noGrantIsLeft()
}

// minding returns a policy that refuses the deletion of heirlooms.
func minding(group string) (client.Object, client.Object) {
	name := "heirlooms." + group
	forbidden := metav1.StatusReasonForbidden
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{"cups"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "oldObject.metadata.name != 'heirloom'", Message: "it is an heirloom", Reason: &forbidden,
			}},
		},
	}
	return policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

// TestConversionGoesWhenNothingNeedsIt has a definition whose objects were stored in two versions.
// Its objects are listed with a temporary grant.
func TestConversionGoesWhenNothingNeedsIt(t *testing.T) {
	w := newWorld(t)
	w.UseDeployedRole()
	w.supervise()
	const group = "mixed.example.com"
	crd := w.tableware(group)
	w.storesNext(crd)
	csv := w.kettle("kettle.v1", converts(crd.Name, "/convert"))
	mine := cup(group, w.Namespace, "mine")
	mine.SetAPIVersion(group + "/v2")
	w.Eventually(func() error { return w.Client.Create(t.Context(), mine) }).Should(gomega.Succeed())
	w.Create(w.group("all"), csv)
	w.succeeds("kettle.v1")
	strategy := func() apiextensionsv1.ConversionStrategyType {
		w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
		return crd.Spec.Conversion.Strategy
	}
	w.Expect(strategy()).To(gomega.Equal(apiextensionsv1.WebhookConverter))

	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.waits("stage 4 of 9 (conversions)", "CustomResourceDefinition "+crd.Name+" still uses conversion webhook", "chandlery.dev/skip-cleanup=true")
	w.Expect(strategy()).To(gomega.Equal(apiextensionsv1.WebhookConverter))

	w.Expect(w.Delete(t.Context(), mine)).To(gomega.Succeed())
	w.EventuallyGone(csv)
	w.Expect(strategy()).To(gomega.Equal(apiextensionsv1.NoneConverter))
	w.noGrantIsLeft()
}

// storesNext adds a second version to a definition and makes it the storage version.
func (w *world) storesNext(crd *apiextensionsv1.CustomResourceDefinition) {
	w.T.Helper()
	w.Eventually(func() error {
		if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		next := *crd.Spec.Versions[0].DeepCopy()
		next.Name = "v2"
		crd.Spec.Versions[0].Storage = false
		crd.Spec.Versions = append(crd.Spec.Versions[:1], next)
		return w.Update(w.T.Context(), crd)
	}).Should(gomega.Succeed())
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(crd), crd)).To(gomega.Succeed())
		g.Expect(crd.Status.StoredVersions).To(gomega.Equal([]string{"v1", "v2"}))
	}).Should(gomega.Succeed())
}
