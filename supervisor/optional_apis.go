package supervisor

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/discovery/openshift"
	"github.com/chandlery/chandlery/supervisor/discovery/optional"
)

// openShiftUser uses objects of OpenShift.
type openShiftUser interface {
	// Found reads the objects if OpenShift's API is installed.
	Found(ctx context.Context, reader client.Reader, result discovery.Result)
}

// watchOptionalAPIs checks which of the optional APIs are installed, and repeats that while the manager runs. It
// returns an error if OpenShift's API is required and missing. Users of the objects of OpenShift get each result.
func (s *startup) watchOptionalAPIs(ctx context.Context, mgr ctrl.Manager, crds cache.Cache, users []openShiftUser) (*openshift.Proxies, error) {
	finder, err := discovery.New(mgr.GetConfig(), discovery.Options{})
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it prepared
	}
	proxies := openshift.NewProxies(mgr.GetAPIReader())
	found := func(ctx context.Context, result discovery.Result) {
		proxies.Found(ctx, result)
		for _, user := range users {
			user.Found(ctx, mgr.GetAPIReader(), result)
		}
	}
	watcher, err := optional.NewWatcher(finder, optional.Settings{optional.OpenShift: s.options.OpenShift},
		map[string]optional.Listener{optional.OpenShift: found}, metrics.Registry)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the metric
	}
	err = s.await("finding out whether required APIs are there", func() error {
		finder.Invalidate()
		return watcher.Check(ctx) //nolint:wrapcheck // names the flag and the API
	})
	if err != nil {
		return nil, err
	}
	informer, err := crds.GetInformer(ctx, &apiextensionsv1.CustomResourceDefinition{})
	if err != nil {
		return nil, fmt.Errorf("preparing to watch CustomResourceDefinitions: %w", err)
	}
	if _, err := informer.AddEventHandler(watcher.Handler()); err != nil {
		return nil, fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	if err := mgr.Add(watcher); err != nil {
		return nil, fmt.Errorf("adding the checks of optional APIs: %w", err)
	}
	return proxies, nil
}
