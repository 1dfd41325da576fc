package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/sampling"
)

const (
	// crowd is the number of concurrent installations.
	crowd = 24
	// density is the number of failing calls in one installation, far from each other.
	density = 6
)

// TestEveryCallFails installs and upgrades an operator until each call has failed once in each
// possible way. The outcome must be as if nothing had failed.
func TestEveryCallFails(t *testing.T) {
	b := newBed(t)
	b.supervise()
	want, calls := b.undisturbed(4)
	type disturbance struct {
		place
		kind
	}
	var list []disturbance
	for _, p := range calls {
		for _, k := range kinds(p.mutates) {
			list = append(list, disturbance{p, k})
		}
	}
	all := len(list)
	list = share(t, list)
	installations := (len(list) + density - 1) / density
	t.Logf("%d calls and %d of %d faults, in %d installations", len(calls), len(list), all, installations)
	var (
		crew   sync.WaitGroup
		missed = make([][]string, installations)
		free   = make(chan struct{}, crowd)
	)
	for i := range installations {
		s := b.script()
		var titles []string
		for j := i; j < len(list); j += installations {
			s.faults[list[j].place] = list[j].kind
			titles = append(titles, fmt.Sprintf("%s %s", list[j].place, list[j].kind.name))
		}
		free <- struct{}{}
		crew.Go(func() {
			defer func() { <-free }()
			if _, err := b.install(t.Context(), s, want); err != nil {
				t.Errorf("namespace %s, where\n%s\nnot made: %q\n%v", s.namespace, strings.Join(titles, "\n"), s.left(), err)
			}
			missed[i] = s.left()
		})
	}
	crew.Wait()
	// The calls depend on the speed of other components: a few occur only in some installations.
	left := slices.Concat(missed...)
	t.Logf("%d faults have not come about: %s", len(left), strings.Join(left, "; "))
	if len(left) > len(list)/4 {
		t.Errorf("%d of %d faults have not come about", len(left), len(list))
	}
}

// share returns one in $FAULTS elements of a list, different ones each time; all of it by default.
func share[T any](t *testing.T, list []T) []T {
	t.Helper()
	n := faults(t)
	first := rand.IntN(n)
	var part []T
	for i, each := range list {
		if i%n == first {
			part = append(part, each)
		}
	}
	return part
}

// faults returns $FAULTS: one of so many faults is injected.
func faults(t *testing.T) int {
	t.Helper()
	return sampling.Number(t, "FAULTS", 1, 1)
}

// undisturbed makes some installations without faults, and returns their common outcome and calls.
func (b *bed) undisturbed(installations int) (string, []place) {
	b.t.Helper()
	var (
		crew     sync.WaitGroup
		scripts  = make([]*script, installations)
		outcomes = make([]string, installations)
	)
	for i := range scripts {
		scripts[i] = b.script()
		crew.Go(func() {
			var err error
			if outcomes[i], err = b.install(context.WithoutCancel(b.t.Context()), scripts[i], ""); err != nil {
				b.t.Errorf("undisturbed: %v", err)
			}
		})
	}
	crew.Wait()
	for i := range outcomes {
		if outcomes[i] != outcomes[0] {
			b.t.Errorf("undisturbed installations differ:\n%s", diff(outcomes[0], outcomes[i]))
		}
	}
	if b.t.Failed() {
		b.t.FailNow()
	}
	return outcomes[0], places(scripts)
}

// TestServerIsAway makes the API server unreachable during installations at many different stages.
// In other installations it cuts every watch repeatedly; only a third of them if not all faults are
// injected. All must complete without help.
func TestServerIsAway(t *testing.T) {
	b := newBed(t)
	b.supervise()
	want, _ := b.undisturbed(1)
	var crew sync.WaitGroup
	begin := func(what string, n int, every time.Duration) {
		if faults(t) > 1 {
			n /= 3
		}
		for i := range n {
			s := b.script()
			crew.Go(func() {
				if !pause.For(t.Context(), time.Duration(i)*every) {
					return
				}
				if _, err := b.install(t.Context(), s, want); err != nil {
					t.Errorf("%s, namespace %s: %v", what, s.namespace, err)
				}
			})
		}
	}
	begin("the watches were cut", 6, 300*time.Millisecond)
	cut := 0
	for range 10 {
		pause.For(t.Context(), 300*time.Millisecond)
		cut += b.proxy.DropWatches()
	}
	if cut == 0 {
		t.Error("there were no watches")
	}
	crew.Wait()

	begin("the server was away", 12, 300*time.Millisecond)
	pause.For(t.Context(), 2*time.Second)
	b.proxy.Leave()
	pause.For(t.Context(), away(t))
	b.proxy.Return()
	crew.Wait()
}

// away returns how long the API server is unreachable. Watches restart later after a longer time, because their backoff
// grows; it is shorter if not all faults are injected.
func away(t *testing.T) time.Duration {
	t.Helper()
	if faults(t) > 1 {
		return 15 * time.Second
	}
	return 40 * time.Second
}
