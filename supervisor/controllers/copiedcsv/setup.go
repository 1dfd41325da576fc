package copiedcsv

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// reconcileTimeout limits one pass. It leaves time for the rate limit of all steps while other
// versions are reconciled too.
const reconcileTimeout = 2 * time.Minute

// Options configures the controllers. The zero value works.
type Options struct {
	// ProtectedNamespaces get copies of versions that serve all namespaces even if the OLMConfig
	// disables them.
	ProtectedNamespaces []string
	// Rate and Burst limit the writes to copies: Rate is per second, Burst is the number of writes
	// at once. Defaults: 50 and 100.
	Rate  float64
	Burst int
	// Clock provides the current time; the system clock if nil.
	Clock clock.PassiveClock
	// Workers is the number of versions reconciled concurrently; 2 if zero.
	Workers int
	// Metrics is where the metrics are registered; controller-runtime's registry if nil.
	Metrics prometheus.Registerer
}

func (o Options) withDefaults() Options {
	if o.Rate <= 0 {
		o.Rate = 50
	}
	if o.Burst <= 0 {
		o.Burst = 100
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	return o
}

// Setup adds the controllers to a manager. The manager's scheme must contain
// operators.coreos.com/v1alpha1 and v1 and the built-in kinds. The controllers run on the leader
// only and fill their caches on standbys too.
//
// The manager's cache should exclude copies with the selector !olm.copiedFrom for
// ClusterServiceVersions. Without it, the controllers work but need more memory.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	ctx := context.Background() //nolint:forbidigo // Indexes are added before anything runs, and adding them waits for nothing.
	copied, err := newCache(ctx, mgr)
	if err != nil {
		return err
	}
	if err := addIndexes(ctx, mgr); err != nil {
		return err
	}
	r := reader{client: mgr.GetClient(), live: mgr.GetAPIReader(), copies: copied, protected: o.ProtectedNamespaces}
	if err := setupCopies(mgr, o, r, copied); err != nil {
		return fmt.Errorf("setting up the controller of copied ClusterServiceVersions: %w", err)
	}
	if err := setupConfig(mgr, o, r, copied); err != nil {
		return fmt.Errorf("setting up the OLMConfig controller: %w", err)
	}
	return nil
}

func setupCopies(mgr ctrl.Manager, o Options, r reader, copied cache.Cache) error {
	counts, err := newCounts(o.Metrics)
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	m := mapper{reader: mgr.GetClient(), copies: copied}
	return ctrl.NewControllerManagedBy(mgr).
		Named("copies").
		Watches(&operatorsv1alpha1.ClusterServiceVersion{}, m.versionEvents(), builder.WithPredicates(informer.IgnoreCauses())).
		Watches(&operatorsv1.OperatorGroup{}, handler.EnqueueRequestsFromMapFunc(m.forOperatorGroup)).
		Watches(&operatorsv1.OLMConfig{}, handler.EnqueueRequestsFromMapFunc(m.forOLMConfig)).
		Watches(&rbacv1.Role{}, handler.EnqueueRequestsFromMapFunc(m.owner)).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(m.owner)).
		WatchesMetadata(namespaceMetadata(), handler.EnqueueRequestsFromMapFunc(m.forNamespace), builder.WithPredicates(existenceChanged())).
		WatchesRawSource(source.Kind(copied, copyMetadata(), m.copyEvents())).
		WithOptions(options(o.Workers)).
		Complete(&reconciler{
			reader:        r,
			writer:        writer{client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: o.Clock, limits: newLimits(o.Rate, o.Burst), counts: counts},
			versionStates: newVersionStates(),
			clock:         o.Clock,
			events:        mgr.GetEventRecorder("chandlery-copies"),
			counts:        counts,
		})
}

func setupConfig(mgr ctrl.Manager, o Options, r reader, copied cache.Cache) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("olmconfig").
		For(&operatorsv1.OLMConfig{}).
		Watches(&operatorsv1alpha1.ClusterServiceVersion{}, enqueueConfig[client.Object](), builder.WithPredicates(informer.IgnoreCauses())).
		Watches(&operatorsv1.OperatorGroup{}, enqueueConfig[client.Object]()).
		WatchesMetadata(namespaceMetadata(), enqueueConfig[client.Object](), builder.WithPredicates(existenceChanged())).
		WatchesRawSource(source.Kind(copied, copyMetadata(), enqueueConfig[*metav1.PartialObjectMetadata]())).
		WithOptions(options(1)).
		Complete(&configReconciler{reader: r, client: mgr.GetClient(), clock: o.Clock})
}

func options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		EnableWarmup:            new(true),
		ReconciliationTimeout:   reconcileTimeout,
		RateLimiter:             apply.RateLimiter(),
	}
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}
