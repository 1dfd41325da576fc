package suite_test

import (
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/fakecatalog"
)

// currents returns the values of status.currentCSV of a Subscription, in order and without
// repetitions.
func (r *record) currents(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, sub := range r.statuses[name] {
		list = append(list, sub.Status.CurrentCSV)
	}
	return slices.Compact(list)
}

// TestCurrentCSVWaitsForItsBundle has a catalog offer an update whose image does not exist,
// and then one that can be had: status.currentCSV never names the first.
func TestCurrentCSVWaitsForItsBundle(t *testing.T) {
	const unpacked = operatorsv1alpha1.SubscriptionBundleUnpackFailed
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	absent := strings.TrimPrefix(server.URL, "http://") + "/lamp:2"
	for name, change := range map[string]func(*operatorsv1alpha1.SubscriptionSpec){
		"automatic": func(*operatorsv1alpha1.SubscriptionSpec) {}, "manual": manual,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server.Serve(w.lamp(1))
			w.create(w.subscription("my-lamp", "lamp", change))
			r := w.recording()
			stop := w.supervise()
			if name == "manual" {
				w.approve(w.onlyPlan(asking).Name)
			}
			w.succeed("lamp.v1")
			w.settled("my-lamp", "lamp.v1")

			update := w.lamp(2)
			update.Channels[0].Entries[1].Image, update.Channels[0].Entries[1].Objects = absent, nil
			w.server.Serve(update)
			fails := func() *operatorsv1alpha1.Subscription {
				return w.says("my-lamp", unpacked, "BundleUnpackFailed", "Bundle unpacking failed - NotFound: bundle lamp.v2: ")
			}
			check := func(sub *operatorsv1alpha1.Subscription) {
				t.Helper()
				s := sub.Status
				if s.CurrentCSV != "lamp.v1" || s.InstalledCSV != "lamp.v1" || s.GetCondition(operatorsv1alpha1.SubscriptionBundleUnpacking).Status == corev1.ConditionTrue {
					t.Errorf("status %+v", s)
				}
			}
			check(fails())
			stop()
			if got := r.currents("my-lamp"); !slices.Equal(got, []string{"", "lamp.v1"}) {
				t.Errorf("currentCSV was %q", got)
			}
			// What a supervisor before this rule wrote is corrected in one write.
			sub := w.subscription("my-lamp", "lamp")
			w.patchStatus(sub, `{"status":{"currentCSV":"lamp.v2"}}`)
			r = w.recording()
			stop = w.supervise()
			w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.CurrentCSV == "lamp.v1" })
			check(fails())
			for _, p := range w.plans() {
				if slices.Contains(p.Spec.ClusterServiceVersionNames, "lamp.v2") && p.Status.Phase != operatorsv1alpha1.InstallPlanPhasePlanning {
					t.Errorf("InstallPlan %s of lamp.v2 is in phase %s", p.Name, p.Status.Phase)
				}
			}

			fixed := w.lamp(3)
			fixed.Channels[0].Entries[1].Image, fixed.Channels[0].Entries[1].Objects = absent, nil
			fixed.Channels[0].Entries[2].Replaces, fixed.Channels[0].Entries[2].Skips = "lamp.v1", []string{"lamp.v2"}
			w.server.Serve(fixed)
			if name == "manual" {
				sub := w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.CurrentCSV == "lamp.v3" })
				w.approve(sub.Status.InstallPlanRef.Name)
			}
			w.succeed("lamp.v3")
			w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
				return sub.Status.CurrentCSV == "lamp.v3" && sub.Status.GetCondition(unpacked).Status != corev1.ConditionTrue
			})
			stop()
			if got := r.currents("my-lamp"); !slices.Equal(slices.DeleteFunc(got, func(s string) bool { return s == "lamp.v2" }), []string{"lamp.v1", "lamp.v3"}) {
				t.Errorf("currentCSV was %q", got)
			}
		})
	}
	t.Run("first", func(t *testing.T) {
		w := newWorld(t)
		w.server.Serve(fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Image: absent}), w.lampBeside())
		w.create(w.subscription("my-lamp", "lamp"), w.subscription("my-torch", "torch"))
		r := w.recording()
		w.supervise()
		s := w.says("my-lamp", unpacked, "BundleUnpackFailed", "Bundle unpacking failed - NotFound: bundle lamp.v1: ").Status
		w.Expect(s.State).To(gomega.BeEmpty())
		// What is resolved together waits together.
		w.says("my-torch", unpacked, "BundleUnpackFailed", "bundle lamp.v1: ")
		for _, name := range []string{"my-lamp", "my-torch"} {
			if got := r.currents(name); !slices.Equal(got, []string{""}) {
				t.Errorf("currentCSV of %s was %q", name, got)
			}
		}
	})
}

// lampBeside is a package that requires lamp.
func (w *world) lampBeside() fakecatalog.Package {
	return single("torch", requiresPackage("lamp"))
}

func (w *world) patchStatus(sub *operatorsv1alpha1.Subscription, text string) {
	w.t.Helper()
	if err := w.Status().Patch(w.t.Context(), sub, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		w.t.Fatal(err)
	}
}
