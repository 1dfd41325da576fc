package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCopiesRolesAndCleansThemUpAfterAnAbsence(t *testing.T) {
	w := newWorld(t)
	stop := w.supervise()
	csv := w.kettle("kettle.v1", asks)
	name := "kettle.v1-kettle-" + w.Namespace
	sa, role, binding := w.permissions(name)
	other := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "other-" + w.Namespace, Labels: w.owner("other.v1")}}
	w.Create(w.group("all"), csv, sa, role, binding, other)
	w.succeeds("kettle.v1")

	copied := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	bound := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(copied), copied)).To(gomega.Succeed())
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(bound), bound)).To(gomega.Succeed())
	w.Expect(copied.Rules).To(gomega.HaveLen(2))

	// An edited role, or a binding with copied labels, grants no more permissions.
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	w.Expect(w.Update(t.Context(), role)).To(gomega.Succeed())
	mine := binding.DeepCopy()
	mine.ObjectMeta = metav1.ObjectMeta{Namespace: w.Namespace, Name: "mallory-" + w.Namespace, Labels: w.owner("kettle.v1")}
	mine.RoleRef.Name = "cluster-admin"
	w.Create(mine)
	w.Expect(w.Patch(t.Context(), bound.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"subjects":[]}`)))).To(gomega.Succeed())
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(bound), bound)).To(gomega.Succeed())
		g.Expect(bound.Subjects).To(gomega.Equal(binding.Subjects), "the subjects of the copied binding are not restored")
	}).Should(gomega.Succeed())
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(copied), copied)).To(gomega.Succeed())
	w.Expect(copied.Rules).To(gomega.HaveLen(2))
	w.EventuallyGone(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: mine.Name}})

	stop()
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(csv), csv)).To(gomega.Succeed(), "the finalizer did not hold")

	w.supervise()
	w.EventuallyGone(csv)
	w.EventuallyGone(copied)
	w.EventuallyGone(bound)
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(other), other)).To(gomega.Succeed(), "somebody else's role went too")
}

func TestRemovesCopiesWhenTheGroupStopsTargetingAll(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	name := "kettle.v1-kettle-" + w.Namespace
	sa, role, binding := w.permissions(name)
	group := w.group("all")
	w.Create(group, w.kettle("kettle.v1", asks), sa, role, binding)
	w.succeeds("kettle.v1")
	w.Eventually(func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
			return err
		}
		group.Spec.TargetNamespaces = []string{w.Namespace}
		return w.Update(t.Context(), group)
	}).Should(gomega.Succeed())

	w.EventuallyGone(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.EventuallyGone(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.succeeds("kettle.v1")
}

func TestNamespaceLabelsFollowGroups(t *testing.T) {
	w := newWorld(t)
	stop := w.supervise()
	group := w.group("own", w.Namespace)
	w.Create(group)
	label := "olm.operatorgroup.uid/" + string(group.UID)
	labels := func() map[string]string {
		var ns corev1.Namespace
		if err := w.Get(t.Context(), client.ObjectKey{Name: w.Namespace}, &ns); err != nil {
			t.Errorf("getting the namespace: %v", err)
		}
		return ns.Labels
	}
	w.Eventually(labels).Should(gomega.HaveKeyWithValue(label, ""))
	var live operatorsv1.OperatorGroup
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(group), &live)).To(gomega.Succeed())
	w.Expect(live.Status.Namespaces).To(gomega.Equal([]string{w.Namespace}))
	w.Expect(live.Status.LastUpdated).NotTo(gomega.BeNil())

	stop()
	w.Expect(w.Delete(t.Context(), group)).To(gomega.Succeed())
	w.supervise()
	w.Eventually(labels).ShouldNot(gomega.HaveKey(label))
}
