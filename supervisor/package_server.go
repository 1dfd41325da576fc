package supervisor

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chandlery/chandlery/supervisor/apiserver/availability"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// runPackageServer serves PackageManifests until ctx ends, and runs no other controller. Each of several processes
// serves. One of them leads and registers the API.
func runPackageServer(ctx context.Context, cfg *rest.Config, o Options) error {
	proxies, err := excludeFromProxies(cfg)
	if err != nil {
		return err
	}
	ctx, cancelRun := context.WithCancelCause(ctx)
	defer cancelRun(nil)
	ready := &readiness{monitor: availability.NewMonitor(availability.Config{Server: cfg.Host, Log: ctrl.LoggerFrom(ctx), Clock: clock.RealClock{}})}
	served, err := openPorts(ctx, cfg, o, ready)
	if err != nil {
		return err
	}
	stop := served.serve(ctx, cancelRun)
	mgr, err := newPackageServer(cfg, o)
	if err == nil {
		store := catalogs.NewStore(ctx, o.CatalogRefreshInterval, clock.RealClock{})
		store.Proxies = proxies
		err = catalogs.Setup(mgr, store)
		packages, failed := packagemanifest.Setup(ctx, mgr, packagemanifest.Options{
			Setting: o.PackageManifests, Store: store, Config: cfg,
			GlobalNamespace: o.GlobalCatalogNamespace, Namespace: o.LeaderElectionNamespace,
		})
		ready.usePackages(packages)
		err = errors.Join(err, failed)
	}
	if err == nil {
		ready.use(cachesSynced(mgr.GetCache()))
		err = mgr.Start(ctx)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errServing) {
		err = cause
	}
	cancelRun(nil)
	return errors.Join(err, stop())
}

// newPackageServer returns the manager of a package server.
func newPackageServer(cfg *rest.Config, o Options) (ctrl.Manager, error) {
	shared, err := managerOptions(cfg, o, packagemanifest.PackageServer)
	if err != nil {
		return nil, err
	}
	limitCache(shared.Cache, o.LeaderElectionNamespace)
	reduced := rest.CopyConfig(cfg)
	if err := informer.ReduceReplies(reduced); err != nil {
		return nil, err //nolint:wrapcheck // says what failed
	}
	mgr, err := ctrl.NewManager(reduced, shared)
	if err != nil {
		return nil, fmt.Errorf("preparing the package server: %w", err)
	}
	return mgr, nil
}

// limitCache limits the objects of a cache: of the Deployments to those of the own namespace, and of the namespaces and
// APIServices to one each. The package server needs no permission for others.
func limitCache(o cache.Options, namespace string) {
	one := func(version, kind, name string) {
		m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}}
		o.ByObject[m] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
	}
	one("apiregistration.k8s.io/v1", "APIService", packagemanifest.APIServiceName())
	one(corev1.SchemeGroupVersion.String(), "Namespace", namespace)
	o.ByObject[&appsv1.Deployment{}] = cache.ByObject{Namespaces: map[string]cache.Config{namespace: {}}}
}
