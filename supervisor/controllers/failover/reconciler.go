package failover

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/replicas"
)

const (
	// sweep is the interval of reconciliations without events.
	sweep = time.Minute
	// jitter spreads the retries of actions that are held back.
	jitter = 0.2
)

// replicaReader returns the probe results for the replicas of a catalog.
type replicaReader interface {
	Replicas(catalog types.NamespacedName) []replicas.State
}

// Reconciler decides on the replicas of all catalogs at once, because each decision depends on the
// other replicas.
type Reconciler struct {
	reader   client.Reader // reads the cache
	live     client.Reader // reads the API server
	client   client.Client
	replicas replicaReader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	limits   Limits
	standing func() Standing

	// State of this process. Reconcile is never called concurrently.
	budget   Budget
	marks    map[types.UID]Mark
	attempts map[Target]Attempt
	leases   sightings
	held     map[Hold]int
	started  time.Time
}

// Reconcile observes, decides and acts within the standing of the process.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	standing := r.standing()
	seen, err := r.observe(ctx, standing)
	if err != nil {
		return ctrl.Result{}, err
	}
	silence := seen.silence()
	silent := !silence.IsZero()
	if standing != Leading && !silent {
		return ctrl.Result{}, nil // a replica that stops answering triggers an event
	}
	if standing == Waiting {
		return ctrl.Result{RequeueAfter: watch(seen.Now, silence)}, nil
	}
	if silent {
		r.observeLeases(ctx, seen)
	}
	decision := Decide(seen.Observation)
	r.budget = decision.Budget
	r.tell(ctx, decision.Held)
	next := sweep
	if decision.Wake > 0 {
		next = min(next, decision.Wake)
	}
	if standing != Leading {
		next = watch(seen.Now, silence)
	}
	if complete := r.act(ctx, seen, decision.Actions); !complete {
		next = min(next, firstPause)
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(next, jitter)}, nil
}

// tell updates the metric of held actions and logs changes.
func (r *Reconciler) tell(ctx context.Context, now map[Hold]int) {
	for _, hold := range Holds() {
		held.WithLabelValues(string(hold)).Set(float64(now[hold]))
	}
	if maps.Equal(now, r.held) {
		return
	}
	logger := log.FromContext(ctx)
	for _, hold := range Holds() {
		if n := now[hold]; n != r.held[hold] {
			logger.Info("Holding failover", "hold", hold, "actions", n)
		}
	}
	r.held = now
}
