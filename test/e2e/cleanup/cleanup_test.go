package cleanup_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestDeletedWhileTheSupervisorIsAway deletes operators, and the namespace of another one, while no
// supervisor runs. The next supervisor must clean up everything, and nothing else. The
// OperatorGroup of that namespace is deleted before the version, as a namespace deletion may do.
func TestDeletedWhileTheSupervisorIsAway(t *testing.T) {
	b := newBed(t)
	b.supervise()
	b.settle()
	list := []*trial{
		newTrial(forAll, "away-all", nil, false), newTrial(forSome, "away-some", nil, false), newTrial(forAll, "away-whole", nil, false),
	}
	whole := list[2].namespace
	before := b.prepare(list...)
	versions := b.install(list...)
	b.kill()
	for _, csv := range versions[:2] {
		if err := b.Delete(t.Context(), csv); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []client.Object{
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: whole, Name: groupName(whole)}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: whole}},
	} {
		if err := b.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	b.supervise()
	maps.DeleteFunc(before, func(name, _ string) bool {
		return strings.Contains(name, " "+whole+"/") || name == "Namespace "+whole
	})
	b.leaves(before)
}

// batch is the number of operators installed together and deleted one after the other.
const batch = 12

// TestDiesAtEachCallOfACleanUp deletes operators until the supervisor has died once at each call of
// a clean-up. It dies before the API server receives the call and, if the call changes something,
// also after it was carried out. The next supervisor must finish the clean-up and restore the state
// before the operators. Operators for some namespaces cover the calls that one for all namespaces
// does not need.
func TestDiesAtEachCallOfACleanUp(t *testing.T) {
	b := newBed(t)
	b.supervise()
	b.settle()
	all, some := newTrial(forAll, "undisturbed-all", nil, false), newTrial(forSome, "undisturbed-some", nil, false)
	b.round([]*trial{all, some})
	calls := all.seen()
	more := without(some.seen(), calls)
	if len(calls) == 0 || len(more) == 0 {
		t.Fatalf("a clean-up makes %d calls, and %d where there are copies of roles", len(calls), len(more))
	}
	b.borrows(calls)
	deaths := slices.Concat(trials(forAll, calls), trials(forSome, more))
	list := share(t, deaths)
	t.Logf("a clean-up takes %d calls, and %d others for some namespaces; the supervisor dies at %d of %d points",
		len(calls), len(more), len(list), len(deaths))
	for part := range slices.Chunk(list, batch) {
		began := time.Now()
		b.round(part)
		t.Logf("%d more in %s", len(part), time.Since(began).Round(time.Second))
	}
	var missed []string
	for _, tr := range list {
		if !tr.died() {
			missed = append(missed, tr.String())
		}
	}
	t.Logf("%d deaths have not come about: %s", len(missed), strings.Join(missed, "; "))
	// The number of reads depends on the speed of other components.
	if len(missed) > len(list)/4 {
		t.Errorf("%d of %d deaths have not come about", len(missed), len(list))
	}
}

// borrows checks that the clean-up gets a temporary grant for custom resources and that it is
// revoked. The grant is not an object that the inventory would show.
func (b *bed) borrows(calls []place) {
	b.t.Helper()
	for _, verb := range []string{"create", "delete"} {
		for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
			prefix := verb + " " + kind + ".rbac.authorization.k8s.io chandlery-cleanup-cups."
			if !slices.ContainsFunc(calls, func(p place) bool { return strings.HasPrefix(p.name, prefix) }) {
				b.t.Errorf("no call of the clean-up is %s", prefix)
			}
		}
	}
}

// round installs operators and deletes one after the other while the supervisor dies at the
// selected call. It compares the cluster before and after.
func (b *bed) round(list []*trial) {
	b.t.Helper()
	b.supervise()
	before := b.prepare(list...)
	for i, csv := range b.install(list...) {
		tr := list[i]
		b.rests(tr)
		b.proxy.Decide(tr.judge)
		if err := b.Delete(b.t.Context(), csv); err != nil {
			b.t.Fatal(err)
		}
		b.dies(tr, csv)
		if tr.at == nil {
			// The work of other components belongs to the clean-up.
			b.left(before, tr, list[i+1:])
		}
		b.proxy.Decide(nil)
		b.supervise()
		b.left(before, tr, list[i+1:])
	}
	b.leaves(before)
	b.raze(list...)
}
