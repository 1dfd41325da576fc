package scale_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/scale"
)

const (
	// size is the number of namespaces that get the operator at once in a measured batch.
	size = 20
	// defaultNamespaces is the final number of namespaces without NAMESPACES.
	defaultNamespaces = 200
	// tries is the largest number of later batches, if the load of the machine has caused
	// reconciliations in the previous one.
	tries = 3
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
// reconciliations of the first installations with those of the last. Then all get a version that
// replaces the first.
func TestInstallationsCostTheSame(t *testing.T) {
	total := namespaces(t)
	c, err := scale.Start(t.Context(), scale.Options{Root: "../../..", Dir: bin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	update(t, c, installAll(t, c, total))
}

// installAll installs the operator in namespaces, and in more if reconciliations must be counted
// again. It returns the number of namespaces with the operator.
func installAll(t *testing.T, c *scale.Cluster, total int) int {
	t.Helper()
	early := install(t, c, 0, size)
	if between := total - size; between > size {
		install(t, c, size, between)
	}
	var late []*scale.Batch
	for before := total - size; ; before += size {
		late = append(late, install(t, c, before, before+size))
		grown := scale.Grown(early, late...)
		if len(grown) == 0 {
			return before + size
		}
		if len(late) == tries {
			t.Fatalf("an installation costs more beside others in each of %d batches:\n%s", tries, strings.Join(grown, "\n"))
		}
		t.Logf("measuring more installations:\n%s", strings.Join(grown, "\n"))
	}
}

// update updates the operator in all namespaces and compares the cost with the limits.
func update(t *testing.T, c *scale.Cluster, namespaces int) {
	t.Helper()
	b, err := c.Update(t.Context(), scale.Names(0, namespaces))
	if err != nil {
		t.Fatal(err)
	}
	totals := b.Totals()
	t.Logf("update of %d namespaces: %s; for each %.1f requests (%.1f reads), %d conflicts in all; requests of all: %v",
		namespaces, b.Took, b.Each(totals.Requests()), b.Each(totals.Reads), totals.Conflicts, b.Counts())
	if each := b.Each(totals.Requests()); each > scale.MaxUpdateRequests {
		t.Errorf("%.1f requests for each of %d updates at once, want at most %d", each, namespaces, scale.MaxUpdateRequests)
	}
	if most := max(1, namespaces*scale.MaxConflicts/scale.ConflictsPer); totals.Conflicts > most {
		t.Errorf("%d conflicts in %d updates at once, want at most %d", totals.Conflicts, namespaces, most)
	}
}

// namespaces returns $NAMESPACES, or a default.
func namespaces(t *testing.T) int {
	t.Helper()
	text := os.Getenv("NAMESPACES")
	if text == "" {
		return defaultNamespaces
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2*size {
		t.Fatalf("$NAMESPACES is %q; it has to be a number from %d on", text, 2*size)
	}
	return n
}

// install installs the operator in the namespaces from number from to to, exclusive, and compares
// the cost with the budget.
func install(t *testing.T, c *scale.Cluster, from, to int) *scale.Batch {
	t.Helper()
	b, err := measure(t.Context(), c, from, to)
	if err != nil {
		t.Fatal(err)
	}
	n, totals := b.Namespaces, b.Totals()
	t.Logf("%d to %d namespaces: %s; for each %.1f requests (%.1f reads, %.1f Events beside them), %d conflicts in all; reconciles of all: %v",
		from, to, b.Took, b.Each(totals.Requests()), b.Each(totals.Reads), b.Each(totals.Events), totals.Conflicts, b.Reconciles)
	if exceeded := scale.Exceeded(b); len(exceeded) > 0 {
		t.Errorf("%d installations beside %d others:\n%s", n, from, strings.Join(exceeded, "\n"))
	}
	return b
}

func measure(ctx context.Context, c *scale.Cluster, from, to int) (*scale.Batch, error) {
	names := scale.Names(from, to)
	if err := c.Prepare(ctx, names); err != nil {
		return nil, err
	}
	return c.Install(ctx, from, names)
}
