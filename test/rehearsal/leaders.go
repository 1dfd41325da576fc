package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/pause"
)

// watchInterval is the precision of a witness.
const watchInterval = 50 * time.Millisecond

// witness records who manages the cluster.
type witness struct {
	// lost is when the former manager was first seen to be incomplete, and led when the next one worked.
	lost, led time.Time
	// scaled is when all Deployments of OLM were first seen to have replicas again.
	scaled time.Time
	// free is when a supervisor was first permitted to lead: the record of the takeover was complete.
	free time.Time
	stop context.CancelFunc
	done sync.WaitGroup
}

// leaderWatch watches who manages the cluster.
type leaderWatch struct{ client client.Client }

// takeover records the time from the end of the first program of OLM to the Lease of a supervisor.
func (l *leaderWatch) takeover(ctx context.Context) *witness {
	return watch(ctx, func(ctx context.Context, w *witness) {
		if w.lost.IsZero() && runningPrograms() < len(olmPrograms) {
			w.lost = time.Now()
		}
		if !w.lost.IsZero() && w.free.IsZero() && migration.NewRecords(l.client, home).Check(ctx) == nil {
			w.free = time.Now()
		}
		if !w.lost.IsZero() && w.led.IsZero() && l.supervisorLeads(ctx) {
			w.led = time.Now()
		}
	})
}

// handback records the time from the end of the Lease of a supervisor until both programs of OLM are ready.
func (l *leaderWatch) handback(ctx context.Context) *witness {
	return watch(ctx, func(ctx context.Context, w *witness) {
		if w.lost.IsZero() && !l.supervisorLeads(ctx) {
			w.lost = time.Now()
		}
		if w.lost.IsZero() || !w.led.IsZero() {
			return
		}
		scaled, ready := l.olmStarts(ctx)
		if scaled && w.scaled.IsZero() {
			w.scaled = time.Now()
		}
		if ready {
			w.led = time.Now()
		}
	})
}

// watch calls look until the witness ends.
func watch(ctx context.Context, look func(context.Context, *witness)) *witness {
	ctx, stop := context.WithCancel(ctx)
	w := &witness{stop: stop}
	w.done.Go(func() {
		for pause.For(ctx, watchInterval) {
			look(ctx, w)
		}
	})
	return w
}

// end ends the record, and sets the time without a manager with its limit, and how long a permitted supervisor took to
// lead.
func (w *witness) end(o *outcome) error {
	w.stop()
	w.done.Wait()
	if w.lost.IsZero() || w.led.IsZero() {
		return fmt.Errorf("the manager did not change: the former one ended at %s, the next one worked at %s", w.lost, w.led)
	}
	o.gap, o.limit = w.led.Sub(w.lost), limit
	if !w.scaled.IsZero() {
		o.limit += w.led.Sub(w.scaled)
	}
	if !w.free.IsZero() {
		o.lead = max(0, w.led.Sub(w.free))
	}
	return nil
}

// supervisorLeads reports whether a supervisor holds the Lease. A failed read counts as before: the next one follows.
func (l *leaderWatch) supervisorLeads(ctx context.Context) bool {
	lease := &coordinationv1.Lease{}
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: home, Name: "chandlery-supervisor"}, lease); err != nil {
		return false
	}
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
}

// olmStarts reports whether all Deployments of OLM have replicas, and whether all of these are ready.
func (l *leaderWatch) olmStarts(ctx context.Context) (scaled, ready bool) {
	ready = true
	for name := range olmPrograms {
		d := &appsv1.Deployment{}
		if err := l.client.Get(ctx, client.ObjectKey{Namespace: olmpeer.Namespace, Name: name}, d); err != nil || *d.Spec.Replicas == 0 {
			return false, false
		}
		ready = ready && d.Status.ReadyReplicas == *d.Spec.Replicas && d.Status.ObservedGeneration == d.Generation
	}
	return true, ready
}

// runningPrograms returns the number of programs of OLM that run on the nodes, which are on this machine.
func runningPrograms() int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	found := map[string]bool{}
	for _, file := range files {
		// A process may end between both calls.
		text, _ := os.ReadFile(file)
		program, _, _ := strings.Cut(string(text), "\x00")
		for _, path := range olmPrograms {
			if program == path {
				found[path] = true
			}
		}
	}
	return len(found)
}
