package cleanup_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDeletedWhileTheSupervisorIsAway deletes one operator, and the namespace of another,
// while nobody is there to clean up. Who comes back cleans up everything, and nothing else.
func TestDeletedWhileTheSupervisorIsAway(t *testing.T) {
	const version, whole = "away-version", "away-whole"
	b := newBed(t)
	b.supervise()
	b.settle()
	before := b.prepare(version, whole)
	csv := b.install(version, whole)[0]
	b.kill()
	if err := b.Delete(t.Context(), csv); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: whole}}); err != nil {
		t.Fatal(err)
	}
	b.supervise()
	b.leaves(slices.DeleteFunc(before, func(line string) bool {
		return strings.Contains(line, " "+whole+"/") || strings.HasPrefix(line, "Namespace /"+whole+" ")
	}), version, whole)
}

// batch is how many operators are there at a time, to be deleted one after the other.
const batch = 12

// TestDiesAtEachCallOfACleanUp deletes an operator so often that the supervisor dies once
// at each call that the clean-up takes, before the API server has heard it and, where it
// changes something, after it has been carried out. The next supervisor always ends what
// was begun: the cluster is as it was before the operators came.
func TestDiesAtEachCallOfACleanUp(t *testing.T) {
	b := newBed(t)
	b.supervise()
	b.settle()
	undisturbed := newCrash("undisturbed", nil, false)
	b.round([]*crash{undisturbed})
	calls := undisturbed.seen()
	if len(calls) == 0 {
		t.Fatal("a clean-up makes no calls")
	}
	all := crashes(calls)
	list := share(t, all)
	t.Logf("a clean-up takes %d calls; the supervisor dies at %d of %d points", len(calls), len(list), len(all))
	for some := range slices.Chunk(list, batch) {
		b.round(some)
	}
	var missed []string
	for _, c := range list {
		if !c.died() {
			missed = append(missed, c.String())
		}
	}
	t.Logf("%d deaths have not come about: %s", len(missed), strings.Join(missed, "; "))
	// How often something is looked at depends on how fast others are.
	if len(missed) > len(list)/4 {
		t.Errorf("%d of %d deaths have not come about", len(missed), len(list))
	}
}

// round installs operators, deletes one after the other while the supervisor dies at the
// call that is meant, and compares the cluster before and after.
func (b *bed) round(list []*crash) {
	b.t.Helper()
	b.supervise()
	var namespaces []string
	for _, c := range list {
		namespaces = append(namespaces, c.namespace)
	}
	before := b.prepare(namespaces...)
	for i, csv := range b.install(namespaces...) {
		c := list[i]
		b.proxy.Decide(c.judge)
		if err := b.Delete(b.t.Context(), csv); err != nil {
			b.t.Fatal(err)
		}
		b.dies(c, csv)
		if c.at == nil {
			// What is done by others belongs to it.
			b.leaves(before, namespaces...)
		}
		b.proxy.Decide(nil)
		b.supervise()
		b.goes(csv)
	}
	b.leaves(before, namespaces...)
	b.raze(namespaces...)
}
