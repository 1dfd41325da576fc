package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/copiedcsv"
	"github.com/chandlery/chandlery/test/controlplane"
)

func TestCopiesCanBeTurnedOff(t *testing.T) {
	w := newWorld(t)
	pantry, cellar := controlplane.Namespace(t), controlplane.Namespace(t)
	config := &operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	w.Create(config)
	w.supervise(func(o *copiedcsv.Options) { o.ProtectedNamespaces = []string{cellar, w.Namespace} })
	_, csv := w.installs("")
	w.copied(csv, pantry)
	w.copied(csv, cellar)
	w.copied(csv, "default")
	w.condition(metav1.ConditionFalse, api.ReasonCopiedCSVsEnabled, "Copied CSVs are enabled and present across the cluster")
	w.Expect(w.absent(roleIn(pantry))).To(gomega.BeTrue(), "a version for all namespaces has the cluster's roles, and none in a namespace")

	turn := func(off bool) {
		change(w, config, func(c *operatorsv1.OLMConfig) { c.Spec.Features = &operatorsv1.Features{DisableCopiedCSVs: &off} })
	}
	turn(true)
	w.EventuallyGone(bare(pantry))
	w.EventuallyGone(bare("default"))
	w.copied(csv, cellar)
	w.condition(metav1.ConditionTrue, api.ReasonCopiedCSVsDisabled,
		"Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode")
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.notes("DisabledCopiedCSVs")).To(gomega.Equal([]string{"CSV copying disabled for " + w.Namespace + "/" + name}))
	})
	garden := controlplane.Namespace(t)
	w.quiet()
	w.Expect(w.absent(bare(garden))).To(gomega.BeTrue(), "a new namespace got a copy")

	turn(false)
	w.copied(csv, pantry)
	w.copied(csv, garden)
	w.condition(metav1.ConditionFalse, api.ReasonCopiedCSVsEnabled, "Copied CSVs are enabled and present across the cluster")
	w.quiet()
}

func TestNamespacesComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	_, csv := w.installs("")
	w.copied(csv, "default")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-comes-and-goes-"}}
	w.Create(namespace)
	w.copied(csv, namespace.Name)

	w.Expect(w.Delete(t.Context(), namespace)).To(gomega.Succeed())
	w.EventuallyGone(bare(namespace.Name))
	w.EventuallyGone(namespace)
	w.quiet()
	again := controlplane.Namespace(t)
	w.copied(csv, again)
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(bare(again))
	w.EventuallyGone(bare("default"))
}

// condition waits for the condition of the OLMConfig.
func (w *world) condition(status metav1.ConditionStatus, reason, message string) {
	w.T.Helper()
	config := &operatorsv1.OLMConfig{}
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(w.T.Context(), client.ObjectKey{Name: "cluster"}, config)).To(gomega.Succeed())
		got := apimeta.FindStatusCondition(config.Status.Conditions, "DisabledCopiedCSVs")
		g.Expect(got).NotTo(gomega.BeNil())
		g.Expect(got.Status).To(gomega.Equal(status))
		g.Expect(got.Reason).To(gomega.Equal(reason))
		g.Expect(got.Message).To(gomega.Equal(message))
	})
}

// notes returns the notes of the Events on the test's version with a reason.
func (w *world) notes(reason string) []string {
	w.T.Helper()
	var list eventsv1.EventList
	w.Expect(w.List(w.T.Context(), &list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
	var notes []string
	for i := range list.Items {
		if list.Items[i].Reason == reason && list.Items[i].Regarding.Name == name {
			notes = append(notes, list.Items[i].Note)
		}
	}
	return notes
}
