package operatorgroup

import (
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer/cachelag"
)

// reconcileTimeout limits one reconciliation, so that a hanging API call cannot block a worker.
const reconcileTimeout = time.Minute

// Options configures the controllers of this package. The zero value works.
type Options struct {
	// Clock provides the times in the status; the system clock if nil.
	Clock clock.PassiveClock
	// Workers is the number of objects that each controller reconciles concurrently; 2 if zero.
	Workers int
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	return o
}

// Setup adds the controllers to a manager. The manager's scheme must contain
// operators.coreos.com/v1 and v1alpha1 and the built-in kinds. The controllers run on the leader
// only and fill their caches on standbys too.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	if err := addIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := setupGroups(mgr, o); err != nil {
		return fmt.Errorf("setting up the OperatorGroup controller: %w", err)
	}
	if err := setupNamespaces(mgr, o); err != nil {
		return fmt.Errorf("setting up the OperatorGroup label controller: %w", err)
	}
	if err := setupClaims(mgr, o); err != nil {
		return fmt.Errorf("setting up the OperatorGroup claim controller: %w", err)
	}
	if err := setupGroupRoles(mgr, o); err != nil {
		return fmt.Errorf("setting up the OperatorGroup role controller: %w", err)
	}
	if err := setupAPIRoles(mgr, o); err != nil {
		return fmt.Errorf("setting up the controller of roles for provided APIs: %w", err)
	}
	return nil
}

func setupGroups(mgr ctrl.Manager, o Options) error {
	r := &reconciler{client: mgr.GetClient(), clock: o.Clock, events: mgr.GetEventRecorder("chandlery-operatorgroup")}
	m := mapper{reader: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorgroup").
		For(&operatorsv1.OperatorGroup{}).
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(m.inSameNamespace)).
		WatchesMetadata(namespaceMetadata(), handler.EnqueueRequestsFromMapFunc(m.withSelector)).
		WatchesMetadata(accountMetadata(), handler.EnqueueRequestsFromMapFunc(m.withAccount)).
		WithOptions(options(o)).
		Complete(r)
}

func setupNamespaces(mgr ctrl.Manager, o Options) error {
	m := mapper{reader: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorgroup-labels").
		For(namespaceMetadata(), builder.OnlyMetadata).
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(m.targetNamespaces)).
		WithOptions(options(o)).
		Complete(&namespaceReconciler{client: mgr.GetClient()})
}

func setupClaims(mgr ctrl.Manager, o Options) error {
	m := mapper{reader: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorgroup-claims").
		For(&operatorsv1.OperatorGroup{}).
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(m.competing)).
		Watches(&operatorsv1alpha1.ClusterServiceVersion{}, handler.EnqueueRequestsFromMapFunc(m.inSameNamespace),
			builder.WithPredicates(originals(), predicate.GenerationChangedPredicate{})).
		WithOptions(options(o)).
		Complete(&claimReconciler{client: mgr.GetClient()})
}

func setupGroupRoles(mgr ctrl.Manager, o Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorgroup-roles").
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(ownNamespace)).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(groupsNamespace)).
		WithOptions(options(o)).
		Complete(&groupRolesReconciler{
			client: mgr.GetClient(), roles: roleWriter{client: mgr.GetClient(), clock: o.Clock, lag: &cachelag.Tracker{}},
		})
}

func setupAPIRoles(mgr ctrl.Manager, o Options) error {
	m := mapper{reader: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorgroup-api-roles").
		For(&operatorsv1alpha1.ClusterServiceVersion{}, builder.WithPredicates(originals(), phaseChanged())).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(m.providingVersions), builder.WithPredicates(roleChanged())).
		WithOptions(options(o)).
		Complete(&apiRolesReconciler{
			client: mgr.GetClient(), live: mgr.GetAPIReader(),
			roles:  roleWriter{client: mgr.GetClient(), clock: o.Clock, lag: &cachelag.Tracker{}},
			events: mgr.GetEventRecorder("chandlery-operatorgroup"),
		})
}

func options(o Options) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: o.Workers,
		EnableWarmup:            new(true),
		ReconciliationTimeout:   reconcileTimeout,
		RateLimiter:             apply.RateLimiter(),
	}
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
