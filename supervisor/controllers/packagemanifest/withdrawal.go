package packagemanifest

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/apply"
)

const (
	// stopTimeout limits the check of a process that stops, and stopInterval is the pause after a failed one.
	stopTimeout  = 3 * time.Second
	stopInterval = 500 * time.Millisecond
)

// withdrawal deletes the APIService of an installation that is being uninstalled, in every process. There may be no leader:
// a namespace that is being deleted gets no Lease, and its deletion needs an APIService with an endpoint, or none.
type withdrawal struct {
	// registrar has a client that also writes while the process does not lead.
	registrar *registrar
	// cached reads the Deployment and the metadata of its namespace from caches.
	cached client.Reader
}

// setupWithdrawal adds the controller of the withdrawal to a manager.
func setupWithdrawal(mgr ctrl.Manager, cfg *rest.Config, r *registrar) error {
	c, err := client.New(cfg, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making a client for the deletion of the APIService of PackageManifests: %w", err)
	}
	w := &withdrawal{
		registrar: &registrar{installation: r.installation, namespace: r.namespace, client: c, live: c}, cached: mgr.GetCache(),
	}
	// There is no event of a Deployment that does not exist.
	first := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		queue.Add(ctrl.Request{})
		return nil
	})
	err = watchInstallation(mgr, r).
		Named("packagemanifest-withdrawal").
		WatchesRawSource(first).
		WithOptions(controller.Options{
			NeedLeaderElection: new(false), MaxConcurrentReconciles: 1, RateLimiter: apply.RateLimiter(), ReconciliationTimeout: time.Minute,
		}).
		Complete(w)
	if err == nil {
		err = mgr.Add(everywhere(w.checkAtStop))
	}
	if err != nil {
		return fmt.Errorf("setting up the deletion of the APIService of PackageManifests: %w", err)
	}
	return nil
}

// Reconcile deletes the APIService if the installation is being uninstalled. It sends no request if the caches have the
// installation. They lack the number of replicas, which matters when the process stops.
func (w *withdrawal) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	deployment, err := w.registrar.installed(ctx, w.cached)
	if err != nil || deployment != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, w.check(ctx)
}

// check deletes the APIService if the installation is being uninstalled. Caches may be outdated, so it reads none.
func (w *withdrawal) check(ctx context.Context) error {
	deployment, err := w.registrar.installed(ctx, w.registrar.live)
	if err != nil || deployment != nil {
		return err
	}
	return withdraw(ctx, w.registrar)
}

// checkAtStop checks the installation when ctx ends. The Deployment of a process that is replaced or restarted exists.
func (w *withdrawal) checkAtStop(ctx context.Context) error {
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var failure error
	_ = wait.PollUntilContextCancel(stopping, stopInterval, true, func(ctx context.Context) (bool, error) {
		failure = w.check(ctx)
		return failure == nil, nil
	})
	if failure != nil {
		log.FromContext(ctx).Error(failure, "Cannot check whether to delete the APIService of PackageManifests")
	}
	return nil
}
