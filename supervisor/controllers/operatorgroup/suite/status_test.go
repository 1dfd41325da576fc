package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
)

// status waits until the status of a group passes check.
func (w *world) status(group *operatorsv1.OperatorGroup, check func(g gomega.Gomega, status operatorsv1.OperatorGroupStatus)) {
	w.T.Helper()
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(group), group)).To(gomega.Succeed())
		check(g, group.Status)
	})
}

func TestTargetsFollowTheSelector(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	room := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controlplane.Namespace(t)}}
	og := group(w.Namespace)
	og.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"room-of": w.Namespace}}
	w.Create(og)
	w.status(og, func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) {
		g.Expect(s.LastUpdated).NotTo(gomega.BeNil())
		g.Expect(s.Namespaces).To(gomega.BeEmpty())
	})

	label := "olm.operatorgroup.uid/" + string(og.UID)
	w.Modify(room, func() { room.Labels["room-of"] = w.Namespace })
	w.status(og, func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) {
		g.Expect(s.Namespaces).To(gomega.Equal([]string{room.Name}))
	})
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(room), room)).To(gomega.Succeed())
		g.Expect(room.Labels).To(gomega.HaveKeyWithValue(label, ""))
	})

	w.Modify(room, func() { delete(room.Labels, "room-of") })
	w.status(og, func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) { g.Expect(s.Namespaces).To(gomega.BeEmpty()) })
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(room), room)).To(gomega.Succeed())
		g.Expect(room.Labels).NotTo(gomega.HaveKey(label))
	})
}

func TestSeveralGroupsAreSaidPlainly(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	one, two := group(w.Namespace, w.Namespace), group(w.Namespace, w.Namespace)
	two.Name = "second"
	w.Create(one, two)
	for _, og := range []*operatorsv1.OperatorGroup{one, two} {
		w.status(og, func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) {
			g.Expect(apimeta.IsStatusConditionTrue(s.Conditions, "MultipleOperatorGroup")).To(gomega.BeTrue())
		})
	}
	w.remove(two)
	w.status(one, func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) { g.Expect(s.Conditions).To(gomega.BeEmpty()) })
}

func TestSaysWhichServiceAccount(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	og := group(w.Namespace, w.Namespace)
	og.Spec.ServiceAccountName = "installer"
	w.Create(og)
	missing := func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) {
		g.Expect(s.ServiceAccountRef).To(gomega.BeNil())
		condition := apimeta.FindStatusCondition(s.Conditions, "OperatorGroupServiceAccount")
		g.Expect(condition).NotTo(gomega.BeNil())
		g.Expect(condition.Reason).To(gomega.Equal("ServiceAccountNotFound"))
	}
	w.status(og, missing)

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "installer"}}
	w.Create(account)
	w.status(og, func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) {
		g.Expect(s.Conditions).To(gomega.BeEmpty())
		g.Expect(s.ServiceAccountRef).NotTo(gomega.BeNil())
		g.Expect(s.ServiceAccountRef.UID).To(gomega.Equal(account.UID))
	})

	w.remove(account)
	w.status(og, missing)
	w.Modify(og, func() { og.Spec.ServiceAccountName = "" })
	w.status(og, func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) { g.Expect(s.Conditions).To(gomega.BeEmpty()) })
}
