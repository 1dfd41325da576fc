package catalogsource

import (
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Options are what the controller needs besides the manager.
type Options struct {
	// Store follows the catalogs.
	Store *catalogs.Store
	// Clock tells the time; the real one when nil.
	Clock clock.PassiveClock
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &Reconciler{
		reader:   mgr.GetCache(),
		client:   mgr.GetClient(),
		store:    o.Store,
		recorder: mgr.GetEventRecorder("chandlery-catalogsource"),
		clock:    o.Clock,
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("catalogsource").
		For(catalogs.NewObject()).
		WatchesRawSource(source.Channel(o.Store.Listen(), &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{EnableWarmup: new(true)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the CatalogSource controller: %w", err)
	}
	return nil
}
