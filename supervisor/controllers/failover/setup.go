package failover

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Options configures the controller.
type Options struct {
	// Store follows the replicas of the catalogs.
	Store *catalogs.Store
	// Limits limit how fast the controller acts on pods.
	Limits Limits
	// Role returns the current role of this process; Leader if nil.
	Role func() Role
	// Clock provides the current time; the real clock if nil.
	Clock clock.PassiveClock
}

// reconcileTimeout limits one reconciliation, so that a hanging call cannot block a worker. Each
// write has its own timeout. The next reconciliation does the rest.
const reconcileTimeout = time.Minute

// Setup adds the controller to a manager. It runs in every process, because standbys mark replicas
// if the leader is lost.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Role == nil {
		o.Role = func() Role { return Leader }
	}
	elected := make(election)
	if err := mgr.Add(elected); err != nil {
		return fmt.Errorf("setting up the failover controller: %w", err)
	}
	initMetrics()
	r := &reconciler{
		observer: observer{
			reader: mgr.GetCache(), live: mgr.GetAPIReader(), replicas: o.Store, started: o.Clock.Now(), leases: leaseTimes{},
		},
		actor: actor{
			client: mgr.GetClient(), recorder: mgr.GetEventRecorder("chandlery-failover"), clock: o.Clock,
			marks: map[types.UID]Mark{}, attempts: map[Target]Attempt{},
		},
		clock: o.Clock, limits: o.Limits, role: o.Role,
	}
	all := handler.EnqueueRequestsFromMapFunc(oneRequest)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("failover").
		Watches(&corev1.Pod{}, all).
		Watches(&corev1.Node{}, all, builder.WithPredicates(readiness())).
		WatchesRawSource(source.Channel(o.Store.Listen(), all)).
		WatchesRawSource(source.Channel(elected, all)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1, NeedLeaderElection: new(false), RateLimiter: apply.RateLimiter(), ReconciliationTimeout: reconcileTimeout,
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the failover controller: %w", err)
	}
	return nil
}

// oneRequest maps every event to one request, because all replicas are decided on together.
func oneRequest(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "replicas"}}}
}

// readiness admits changes of a node's readiness. It drops other updates of the kubelet.
func readiness() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isNode := e.ObjectOld.(*corev1.Node)
			after, stillNode := e.ObjectNew.(*corev1.Node)
			return isNode && stillNode && nodeOf(before) != nodeOf(after)
		},
	}
}
