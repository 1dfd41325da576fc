package supervisor

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/discovery/optional"
	"github.com/chandlery/chandlery/supervisor/openshift"
)

// OptionalAPIs says how much the APIs matter that the supervisor uses where they are.
// The zero value uses each where it is.
type OptionalAPIs struct {
	// OpenShift is config.openshift.io, Monitoring monitoring.coreos.com, and Autoscaling
	// autoscaling.k8s.io.
	OpenShift, Monitoring, Autoscaling discovery.Setting
}

// addFlags adds a flag for each.
func (o *OptionalAPIs) addFlags(fs *pflag.FlagSet) {
	fs.Var(&o.OpenShift, optional.OpenShift, "whether config.openshift.io is used, whose Proxy cluster gives the containers of operators their proxies: auto, where it is there; required, the supervisor does not start without; disabled, not even asked for")
	fs.Var(&o.Monitoring, optional.Monitoring, "whether monitoring.coreos.com is looked for, whose kinds bundles may bring: auto, required or disabled, as --openshift; plans with steps of these kinds wait for them in any case")
	fs.Var(&o.Autoscaling, optional.Autoscaling, "whether autoscaling.k8s.io is looked for, whose VerticalPodAutoscalers bundles may bring: auto, required or disabled, as --monitoring")
}

// lookForAPIs finds out which of the optional APIs there are, and goes on looking while
// the manager runs. An API that is required has to be there.
func lookForAPIs(ctx context.Context, mgr ctrl.Manager, o OptionalAPIs) (*openshift.Proxies, error) {
	finder, err := discovery.New(mgr.GetConfig(), discovery.Options{})
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it prepared
	}
	proxies := openshift.NewProxies(mgr.GetAPIReader())
	watcher, err := optional.NewWatcher(finder, optional.Settings{
		optional.OpenShift: o.OpenShift, optional.Monitoring: o.Monitoring, optional.Autoscaling: o.Autoscaling,
	}, map[string]optional.Listener{optional.OpenShift: proxies.Found}, metrics.Registry)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the metric
	}
	if err := watcher.Look(ctx); err != nil {
		return nil, err //nolint:wrapcheck // names the flag and the API
	}
	definitions := &metav1.PartialObjectMetadata{}
	definitions.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	informer, err := mgr.GetCache().GetInformer(ctx, definitions)
	if err != nil {
		return nil, fmt.Errorf("preparing to watch CustomResourceDefinitions: %w", err)
	}
	if _, err := informer.AddEventHandler(watcher.Handler()); err != nil {
		return nil, fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	if err := mgr.Add(watcher); err != nil {
		return nil, fmt.Errorf("adding what looks for optional APIs: %w", err)
	}
	return proxies, nil
}
