package suite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/controlplane"
)

// follow watches plans until the test ends.
func (w *world) follow() <-chan watch.Event {
	w.T.Helper()
	watcher, err := controlplane.Client(w.T).Watch(w.T.Context(), &operatorsv1alpha1.InstallPlanList{}, client.InNamespace(w.Namespace))
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(watcher.Stop)
	return watcher.ResultChan()
}

// changeGroup changes the OperatorGroup, which makes the controller retry plans at once.
func (w *world) changeGroup() {
	w.T.Helper()
	text := `{"metadata":{"annotations":{"roused":"` + time.Now().Format(time.RFC3339Nano) + `"}}}`
	if err := w.Patch(w.T.Context(), w.group("group"), client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		w.T.Fatal(err)
	}
}

// mentions counts the reads of objects of a name.
func (c *tally) mentions(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, line := range c.reads {
		if strings.HasSuffix(line, "/"+name) {
			n++
		}
	}
	return n
}

// TestFailedPlanContinuesAfterItsCause refuses a definition that follows an applicable version.
func TestFailedPlanContinuesAfterItsCause(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.served(w.lamps(map[string]string{"v1": anything}))
	counted := &tally{}
	w.Config.Wrap(counted.watch)
	w.supervise(time.Second)
	events := w.follow()
	w.plan(w.bundle(settings, text(t, w.lamps(map[string]string{"v2": anything}))), true, plansteps.MaxInline)
	w.reaches(failed)
	name := "lamps." + w.Namespace + ".example"
	for range 3 {
		// Each check reads the definition. The next check begins after the outcome of the one
		// before is written.
		before := counted.mentions(name)
		w.changeGroup()
		w.Eventually(func() int { return counted.mentions(name) }).Should(gomega.BeNumerically(">", before))
	}
	w.expectNothingCreated()
	w.migrate()
	w.changeGroup()
	// The plan left Failed only to complete.
	want := []string{"", "Planning", string(working), string(failed), string(working), string(complete)}
	if diff := cmp.Diff(want, phases(t, events)); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

// migrate removes the first version of a definition from its stored versions.
func (w *world) migrate() {
	w.T.Helper()
	w.Eventually(func(g gomega.Gomega) {
		crd := w.definition()
		crd.Spec.Versions = w.lamps(map[string]string{"v1": anything, "v2": anything}).Spec.Versions
		crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
		g.Expect(w.Update(w.T.Context(), crd)).To(gomega.Succeed())
		crd.Status.StoredVersions = []string{"v2"}
		g.Expect(w.Status().Update(w.T.Context(), crd)).To(gomega.Succeed())
	}).Should(gomega.Succeed())
}

// TestForbiddenKindFailsForGood triggers a retry of a plan that cannot be fixed.
func TestForbiddenKindFailsForGood(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.supervise(time.Hour)
	w.plan(w.bundle(settings, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"stray"}}`), true, plansteps.MaxInline)
	version := w.reaches(failed).ResourceVersion
	w.changeGroup()
	w.stays(failed)
	if got := w.read().ResourceVersion; got != version {
		t.Errorf("the plan was written again: %+v", w.read().Status)
	}
	w.expectNothingCreated()
}
