package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func noSideEffects() *admissionregistrationv1.SideEffectClass {
	return ptr.To(admissionregistrationv1.SideEffectClassNone)
}

func TestUpgradesByReplaces(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	old := w.kettle("kettle.v1")
	w.Create(w.group("own", w.Namespace), old)
	w.succeeds("kettle.v1")
	var d appsv1.Deployment
	key := client.ObjectKey{Namespace: w.Namespace, Name: "kettle"}
	w.Expect(w.Get(t.Context(), key, &d)).To(gomega.Succeed())
	first := d.UID

	// The API server refuses Recreate with the rolling update that it set by default for the old
	// version.
	w.Create(w.kettle("kettle.v2", replaces("kettle.v1"), image("example.com/kettle:2"), recreate))

	csv := w.succeeds("kettle.v2")
	w.EventuallyGone(old)
	w.Expect(w.Get(t.Context(), key, &d)).To(gomega.Succeed())
	w.Expect(d.UID).To(gomega.Equal(first), "the Deployment was recreated instead of taken over")
	w.Expect(d.DeletionTimestamp).To(gomega.BeNil())
	w.Expect(d.OwnerReferences).To(gomega.HaveLen(1))
	w.Expect(d.OwnerReferences[0].UID).To(gomega.Equal(csv.UID))
	w.Expect(d.Labels).To(gomega.HaveKeyWithValue("olm.owner", "kettle.v2"))
	w.Expect(d.Spec.Template.Spec.Containers[0].Image).To(gomega.Equal("example.com/kettle:2"))
	w.eventReasons("kettle.v1", "BeingReplaced", "Replaced")
}

func TestUpgradesAlongAChainAtOnce(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	one, two := w.kettle("kettle.v1"), w.kettle("kettle.v2", replaces("kettle.v1"))
	w.Create(w.group("own", w.Namespace), one, two, w.kettle("kettle.v3", replaces("kettle.v2")))

	w.succeeds("kettle.v3")
	w.EventuallyGone(one)
	w.EventuallyGone(two)
}

func TestReturnsToServiceWhenTheReplacementVanishes(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1"))
	w.succeeds("kettle.v1")
	next := w.kettle("kettle.v2", replaces("kettle.v1"), owns("never.example.com"))
	w.Create(next)
	w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseReplacing, operatorsv1alpha1.CSVReasonBeingReplaced)

	w.Expect(w.Delete(t.Context(), next)).To(gomega.Succeed())
	w.succeeds("kettle.v1")
}
