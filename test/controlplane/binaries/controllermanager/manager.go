package controllermanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
)

const (
	// resync is the time after which informers repeat all objects.
	resync = 12 * time.Hour
	// discoveryPeriod is the time after which new kinds of objects are looked for.
	discoveryPeriod = 30 * time.Second
)

// manager has what the controllers share.
type manager struct {
	options options

	// root has the permissions of the process, and clients those of the role of each controller.
	root, clients clientbuilder.ControllerClientBuilder

	typed    informers.SharedInformerFactory
	metadata informerfactory.InformerFactory
	// informersStarted is closed when the informers have started.
	informersStarted chan struct{}

	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newManager(ctx context.Context, o options) (*manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", o.kubeconfig, err)
	}

	config.QPS, config.Burst = o.qps, o.burst
	m := &manager{options: o, informersStarted: make(chan struct{})}
	m.root = clientbuilder.SimpleControllerClientBuilder{ClientConfig: config}

	client, err := m.root.Client("service-account-credentials")
	if err != nil {
		return nil, fmt.Errorf("create the client of the service accounts: %w", err)
	}

	m.clients = clientbuilder.NewDynamicClientBuilder(rest.AnonymousClientConfig(config), client.CoreV1(), metav1.NamespaceSystem)

	shared, err := m.root.Client("shared-informers")
	if err != nil {
		return nil, fmt.Errorf("create the client of the informers: %w", err)
	}

	m.typed = informers.NewSharedInformerFactoryWithOptions(shared, resync, informers.WithTransform(withoutManagedFields))

	partial, err := m.rootMetadata()
	if err != nil {
		return nil, fmt.Errorf("create the client of the metadata informers: %w", err)
	}

	m.metadata = informerfactory.NewInformerFactory(m.typed,
		metadatainformer.NewSharedInformerFactoryWithOptions(partial, resync, metadatainformer.WithTransform(withoutManagedFields)))

	m.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(shared.Discovery()))
	go wait.UntilWithContext(ctx, func(context.Context) { m.mapper.Reset() }, discoveryPeriod)

	return m, nil
}

// rootMetadata returns a client that reads the metadata of all objects.
func (m *manager) rootMetadata() (metadata.Interface, error) {
	config, err := m.root.Config("metadata-informers")
	if err != nil {
		return nil, err
	}

	return metadata.NewForConfig(config)
}

// client returns a client of the controller with the given service account.
func (m *manager) client(account string) (kubernetes.Interface, error) {
	client, err := m.clients.Client(account)
	if err != nil {
		return nil, fmt.Errorf("create the client of %s: %w", account, err)
	}

	return client, nil
}

// withoutManagedFields removes what no controller reads and takes most memory.
func withoutManagedFields(object any) (any, error) {
	if accessor, err := apimeta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}

	return object, nil
}

// run runs the controllers until ctx ends.
func (m *manager) run(ctx context.Context) error {
	enabled, err := enabledControllers(m.options.controllers)
	if err != nil {
		return err
	}

	runs := make([]func(context.Context), 0, len(enabled))

	for _, name := range enabled {
		runController, err := constructors[name](ctx, m)
		if err != nil {
			return fmt.Errorf("create %s: %w", name, err)
		}

		runs = append(runs, runController)
	}

	m.metadata.Start(ctx.Done())
	close(m.informersStarted)
	klog.FromContext(ctx).Info("Started the controllers", "controllers", enabled)

	var running sync.WaitGroup
	for _, runController := range runs {
		running.Go(func() { runController(ctx) })
	}

	running.Wait()
	m.typed.Shutdown()

	return nil
}

// enabledControllers returns the names of the controllers that run, sorted: all except those in selection after a
// minus sign.
func enabledControllers(selection []string) ([]string, error) {
	if len(selection) == 0 || selection[0] != "*" {
		return nil, fmt.Errorf("--controllers: %q must begin with *", strings.Join(selection, ","))
	}

	disabled := map[string]bool{}

	for _, entry := range selection[1:] {
		name, ok := strings.CutPrefix(entry, "-")
		if !ok || constructors[name] == nil {
			return nil, fmt.Errorf("--controllers: %q must be a minus sign and one of %s", entry, controllerNames())
		}

		disabled[name] = true
	}

	return slices.DeleteFunc(controllerNames(), func(name string) bool { return disabled[name] }), nil
}
