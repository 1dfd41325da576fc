package scale_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/sampling"
	"github.com/chandlery/chandlery/test/scale"
)

const (
	// shared is the number of namespaces that get the operator first. Their installations create the
	// definition that all share, and the supervisor opens its connections. No other is compared with them.
	shared = 5
	// size is the number of namespaces that get the operator at once in a compared batch.
	size = 20
	// defaultNamespaces is the final number of namespaces without NAMESPACES.
	defaultNamespaces = 200
	// repetitions is the number of additional later batches if the first one costs more.
	repetitions = 2
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return m.Run()
	}, "./cmd/registry", "./cmd/supervisor"))
}

// TestInstallationsCostTheSame installs one operator in namespaces. It compares the requests and
// reconciliations of the first installations with those of the last. Then these get a version that
// replaces the first. The Subscriptions between them are to a channel without that version.
func TestInstallationsCostTheSame(t *testing.T) {
	total := namespaces(t)
	started, err := scale.Start(t.Context(), scale.Options{Root: "../../..", Dir: bin})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{Cluster: started}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	early, from := scale.Names(0, shared+size), shared+size
	prepare(t, c, early)
	c.measure(t, c.Install, 0, early[:shared])
	first := c.measure(t, c.Install, shared, early[shared:])
	later := compare(t, c, first, from, total)
	if problem := scale.TooManyConflicts(c.measured...); problem != "" {
		t.Error(problem)
	}
	update(t, c, append(early, later...))
}

// cluster has the programs under test, and the batches of installations so far.
type cluster struct {
	*scale.Cluster

	measured []*scale.Batch
}

// compare installs the operator in further namespaces up to a total number, and compares the cost of
// the last ones with an early batch. It returns the last ones.
func compare(t *testing.T, c *cluster, first *scale.Batch, from, total int) []string {
	t.Helper()
	between, later := scale.Names(from, total-size), scale.Names(total-size, total)
	prepare(t, c, append(between, later...))
	if len(between) > 0 {
		c.measure(t, c.InstallFirst, from, between)
	}
	late := []*scale.Batch{c.measure(t, c.Install, total-size, later)}
	grown := scale.Grown(first, late...)
	for i := 0; i < repetitions && len(grown) > 0; i++ {
		t.Logf("measuring more installations:\n%s", strings.Join(grown, "\n"))
		more := scale.Names(total+i*size, total+(i+1)*size)
		prepare(t, c, more)
		late = append(late, c.measure(t, c.Install, total+i*size, more))
		later = append(later, more...)
	}
	if grown = scale.Grown(first, late...); len(grown) > 0 {
		t.Fatalf("an installation costs more beside others, by the median of %d batches:\n%s", len(late), strings.Join(grown, "\n"))
	}
	return later
}

// update updates the operator in namespaces and compares the cost with the limits.
func update(t *testing.T, c *cluster, names []string) {
	t.Helper()
	b, err := c.Update(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	totals, reconciles := b.Totals(), b.Reconciliations()
	t.Logf("update of %d namespaces: %s; for each %.1f requests (%.1f reads) and %.1f reconciles, %d conflicts in all; requests of all: %v; reconciles of all: %v",
		len(names), b.Took, b.Each(totals.Requests()), b.Each(totals.Reads), b.Each(reconciles), totals.Conflicts, b.Counts(), b.Reconciles)
	if each := b.Each(totals.Requests()); each > scale.MaxUpdateRequests {
		t.Errorf("%.1f requests for each of %d updates at once, want at most %d", each, len(names), scale.MaxUpdateRequests)
	}
	if each := b.Each(reconciles); each > scale.MaxUpdateReconciles {
		t.Errorf("%.1f reconciles for each of %d updates at once, want at most %d", each, len(names), scale.MaxUpdateReconciles)
	}
	if problem := scale.TooManyConflicts(b); problem != "" {
		t.Error(problem)
	}
}

// namespaces returns $NAMESPACES, or a default.
func namespaces(t *testing.T) int {
	t.Helper()
	return sampling.Number(t, "NAMESPACES", defaultNamespaces, shared+2*size)
}

// prepare creates namespaces for installations.
func prepare(t *testing.T, c *cluster, names []string) {
	t.Helper()
	if err := c.Prepare(t.Context(), names); err != nil {
		t.Fatal(err)
	}
}

// measure installs the operator in prepared namespaces with a function, and compares the cost with
// the budget. before is the number of namespaces that have the operator.
func (c *cluster) measure(t *testing.T, in func(context.Context, int, []string) (*scale.Batch, error), before int, names []string) *scale.Batch {
	t.Helper()
	b, err := in(t.Context(), before, names)
	if err != nil {
		t.Fatal(err)
	}
	totals := b.Totals()
	t.Logf("%d namespaces beside %d: %s; for each %.1f requests (%.1f reads, %.1f Events beside them) and %.1f reconciles, %d conflicts in all; requests of all: %v; reconciles of all: %v",
		b.Namespaces, before, b.Took, b.Each(totals.Requests()), b.Each(totals.Reads), b.Each(totals.Events), b.Each(b.Reconciliations()), totals.Conflicts, b.Counts(), b.Reconciles)
	if exceeded := scale.Exceeded(b); len(exceeded) > 0 {
		t.Errorf("%d installations beside %d others:\n%s", b.Namespaces, before, strings.Join(exceeded, "\n"))
	}
	c.measured = append(c.measured, b)
	return b
}
