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
	name := "kettle.v1-kettle-" + w.namespace
	sa, role, binding := w.permissions(name)
	other := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "other-" + w.namespace, Labels: w.owner("other.v1")}}
	w.create(w.group("all"), csv, sa, role, binding, other)
	w.finally(other)
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
	mine.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: "mallory-" + w.namespace, Labels: w.owner("kettle.v1")}
	mine.RoleRef.Name = "cluster-admin"
	w.create(mine)
	w.Expect(w.Patch(t.Context(), bound.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"subjects":[]}`)))).To(gomega.Succeed())
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(bound), bound)).To(gomega.Succeed())
		g.Expect(bound.Subjects).To(gomega.Equal(binding.Subjects), "the subjects of the copied binding are not restored")
	}).WithTimeout(patience).Should(gomega.Succeed())
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(copied), copied)).To(gomega.Succeed())
	w.Expect(copied.Rules).To(gomega.HaveLen(2))
	w.gone(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: mine.Name}})

	stop()
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(csv), csv)).To(gomega.Succeed(), "the finalizer did not hold")

	w.supervise()
	w.gone(csv)
	w.gone(copied)
	w.gone(bound)
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(other), other)).To(gomega.Succeed(), "somebody else's role went too")
}

func TestRemovesCopiesWhenTheGroupStopsTargetingAll(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	name := "kettle.v1-kettle-" + w.namespace
	sa, role, binding := w.permissions(name)
	group := w.group("all")
	w.create(group, w.kettle("kettle.v1", asks), sa, role, binding)
	w.succeeds("kettle.v1")
	w.Eventually(func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
			return err
		}
		group.Spec.TargetNamespaces = []string{w.namespace}
		return w.Update(t.Context(), group)
	}).Should(gomega.Succeed())

	w.gone(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.gone(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.succeeds("kettle.v1")
}

func TestNamespaceLabelsFollowGroups(t *testing.T) {
	w := newWorld(t)
	stop := w.supervise()
	group := w.group("own", w.namespace)
	w.create(group)
	label := "olm.operatorgroup.uid/" + string(group.UID)
	labels := func() map[string]string {
		var ns corev1.Namespace
		if err := w.Get(t.Context(), client.ObjectKey{Name: w.namespace}, &ns); err != nil {
			t.Errorf("getting the namespace: %v", err)
		}
		return ns.Labels
	}
	w.Eventually(labels).WithTimeout(patience).Should(gomega.HaveKeyWithValue(label, ""))
	var live operatorsv1.OperatorGroup
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(group), &live)).To(gomega.Succeed())
	w.Expect(live.Status.Namespaces).To(gomega.Equal([]string{w.namespace}))
	w.Expect(live.Status.LastUpdated).NotTo(gomega.BeNil())

	stop()
	w.Expect(w.Delete(t.Context(), group)).To(gomega.Succeed())
	w.supervise()
	w.Eventually(labels).WithTimeout(patience).ShouldNot(gomega.HaveKey(label))
}
