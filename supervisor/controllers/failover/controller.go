package failover

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

const (
	// resyncInterval is the interval of reconciliations without events.
	resyncInterval = time.Minute
	// jitter spreads the retries of actions that are held back.
	jitter = 0.2
)

// replicaReader returns the probe results for the replicas of a catalog.
type replicaReader interface {
	Replicas(catalog types.NamespacedName) []replicas.State
}

// reconciler decides on the replicas of all catalogs at once, because each decision depends on the
// other replicas.
type reconciler struct {
	observer observer
	actor    actor
	clock    clock.PassiveClock
	limits   Limits
	role     func() Role

	// State of this process. Reconcile is never called concurrently.
	budget Budget
	held   map[Hold]int
}

// Reconcile observes, decides and acts within the role of the process.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	role := r.role()
	now := r.clock.Now()
	seen, err := r.observer.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	unreachableSince := seen.unreachableSince()
	unreachable := !unreachableSince.IsZero()
	if role != Leader && !unreachable {
		return ctrl.Result{}, nil // a replica that stops answering triggers an event
	}
	if role == Standby {
		return ctrl.Result{RequeueAfter: nextCheck(now, unreachableSince)}, nil
	}
	nodes := seen.nodes
	if unreachable {
		nodes = r.observer.withLeases(ctx, nodes, now)
	}
	decision := Decide(Input{
		Now: now, Role: role, Catalogs: seen.catalogs, Nodes: nodes,
		Marks: r.actor.marks, Attempts: r.actor.attempts, Budget: r.budget, Limits: r.limits,
	})
	r.budget = decision.Budget
	r.reportHeld(ctx, decision.Held)
	next := resyncInterval
	if decision.RequeueAfter > 0 {
		next = min(next, decision.RequeueAfter)
	}
	if role != Leader {
		next = nextCheck(now, unreachableSince)
	}
	if complete := r.actor.act(ctx, seen, decision.Actions, now); !complete {
		next = min(next, firstPause)
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(next, jitter)}, nil
}

// reportHeld updates the metric of held actions and logs changes.
func (r *reconciler) reportHeld(ctx context.Context, actions map[Hold]int) {
	for _, hold := range Holds() {
		held.WithLabelValues(string(hold)).Set(float64(actions[hold]))
	}
	if maps.Equal(actions, r.held) {
		return
	}
	logger := log.FromContext(ctx)
	for _, hold := range Holds() {
		if n := actions[hold]; n != r.held[hold] {
			logger.Info("Holding failover", "hold", hold, "actions", n)
		}
	}
	r.held = actions
}
