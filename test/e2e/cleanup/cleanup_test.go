package cleanup_test

import (
	"fmt"
	"testing"
	"time"
)

// TestDeletedWhileTheSupervisorIsAway deletes an operator while nobody is there to clean
// up. Who comes back cleans up everything, and nothing else.
func TestDeletedWhileTheSupervisorIsAway(t *testing.T) {
	const namespace = "away"
	b := newBed(t)
	b.supervise()
	before := b.prepare(namespace)
	csv := b.install(namespace)
	b.kill()
	if err := b.Delete(t.Context(), csv); err != nil {
		t.Fatal(err)
	}
	b.supervise()
	b.leaves(namespace, before)
	b.raze(namespace)
}

// TestDiesAtEachCallOfACleanUp deletes an operator so often that the supervisor dies once
// at each call that the clean-up takes, before the API server has heard it and, where it
// changes something, after it has been carried out. The next supervisor always ends what
// was begun: the cluster is as it was before the operator came.
func TestDiesAtEachCallOfACleanUp(t *testing.T) {
	b := newBed(t)
	b.supervise()
	undisturbed := b.round(newCrash("undisturbed", 0, false))
	calls := undisturbed.seen()
	if len(calls) == 0 {
		t.Fatal("a clean-up makes no calls")
	}
	t.Logf("a clean-up takes %d calls", len(calls))
	missed := 0
	for i, call := range calls {
		for _, carriedOut := range []bool{false, true} {
			if carriedOut && !call.Mutates() {
				continue
			}
			c := newCrash(fmt.Sprintf("c%03d-%t", i+1, carriedOut), i+1, carriedOut)
			b.round(c)
			if made := c.seen(); len(made) < c.at {
				missed++
				t.Logf("%s: there were only %d calls", c.namespace, len(made))
			}
		}
	}
	// How often something is looked at depends on how fast others are.
	if missed > len(calls)/4 {
		t.Errorf("%d clean-ups ended before the supervisor was to die, of %d calls", missed, len(calls))
	}
}

// round installs and deletes an operator while the supervisor crashes.
func (b *bed) round(c *crash) *crash {
	b.t.Helper()
	b.supervise()
	before := b.prepare(c.namespace)
	csv := b.install(c.namespace)
	b.proxy.Decide(c.judge)
	if err := b.Delete(b.t.Context(), csv); err != nil {
		b.t.Fatal(err)
	}
	if c.at > 0 {
		// A clean-up that takes fewer calls than the one that was counted ends without.
		limit := time.NewTimer(crashLimit)
		select {
		case <-c.dead:
		case <-limit.C:
		}
		limit.Stop()
		b.kill()
	} else {
		b.leaves(c.namespace, before)
	}
	b.proxy.Decide(nil)
	b.supervise()
	b.leaves(c.namespace, before)
	b.raze(c.namespace)
	return c
}

// crashLimit is how long a clean-up may take until the call at which the supervisor dies.
const crashLimit = 15 * time.Second
