package packagemanifest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/internal/connlimit"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/server"
)

const (
	// reconcileTimeout limits the reading of one catalog.
	reconcileTimeout = 5 * time.Minute
	// workers is the number of catalogs that are reconciled at once. One can always do more than wait for a catalog.
	workers = readers + 1
	// maxConnections is the maximum number of connections to the server. API servers keep a few each.
	maxConnections = 256
)

// Mode is whether the API is served. It is a value of a flag. The zero Mode is auto.
type Mode string

// Modes of the API.
const (
	// Auto serves the API if the supervisor runs in a pod.
	Auto Mode = "auto"
	// Disabled deletes the APIService.
	Disabled Mode = "disabled"
	// Only serves the API with processes that do nothing else.
	Only Mode = "only"
)

// String returns the text of the mode.
func (m *Mode) String() string { return string(cmp.Or(*m, Auto)) }

// Set parses a mode.
func (m *Mode) Set(text string) error {
	if mode := Mode(text); mode == Auto || mode == Disabled || mode == Only {
		*m = mode
		return nil
	}
	return fmt.Errorf("%q is none of auto, disabled and only", text)
}

// Type names the kind of value in usage texts.
func (*Mode) Type() string { return "auto|disabled|only" }

// Setting are the settings of the API that a user makes.
type Setting struct {
	// Mode is whether the API is served.
	Mode Mode
	// Address is the address to listen on.
	Address string
}

// Options are the settings of the API.
type Options struct {
	Setting

	// Store has the content of the catalogs.
	Store *catalogs.Store
	// Config is the access to the API server with which standbys may write, too: SubjectAccessReviews, and the deletion of
	// the APIService of an installation that is being uninstalled.
	Config *rest.Config
	// GlobalNamespace contains the catalogs that serve every namespace.
	GlobalNamespace string
	// Namespace is the namespace of the processes. Without it, the API is not served.
	Namespace string
}

// Setup adds the server and the controllers to a manager. It returns a check whether the process should get requests; nil
// if it serves none. Some time after the start it succeeds even if a catalog cannot be read.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) (ready func(context.Context) error, err error) {
	if o.Namespace == "" {
		return nil, nil //nolint:nilnil // absence is documented
	}
	r := &registrar{
		installation: installationOf(o.Mode), client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clock.RealClock{},
		namespace: o.Namespace, disabled: o.Mode == Disabled,
	}
	if err := setupWithdrawal(mgr, o.Config, r); err != nil {
		return nil, err
	}
	if r.disabled {
		return nil, r.setup(mgr)
	}
	var config net.ListenConfig
	opened, err := config.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("opening the port of PackageManifests: %w", err)
	}
	r.address = ownAddress(opened)
	packages, err := serve(mgr, o, r, connlimit.New(opened, maxConnections, connlimit.Observer{}))
	if err != nil {
		return nil, err
	}
	return (&readiness{read: r.ready, serving: packages.serving.Load, checkEndpoints: r.checkEndpoints}).check, nil
}

// serve adds the server, and the controllers that it needs. It returns the controller that reads the catalogs.
func serve(mgr ctrl.Manager, o Options, r *registrar, listener net.Listener) (*reconciler, error) {
	clientset, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the API of PackageManifests: %w", err)
	}
	index := manifest.NewIndex(o.GlobalNamespace)
	r.ready = index.Ready
	packages := &reconciler{reader: mgr.GetCache(), store: o.Store, index: index, turns: newTurns(o.GlobalNamespace), clock: clock.RealClock{}}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("packagemanifest").
		For(catalogs.NewObject()).
		WatchesRawSource(source.Channel(o.Store.Listen(), &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			NeedLeaderElection: new(false), MaxConcurrentReconciles: workers, RateLimiter: apply.RateLimiter(), ReconciliationTimeout: reconcileTimeout,
		}).
		Complete(packages)
	if err != nil {
		return nil, fmt.Errorf("setting up the controller of PackageManifests: %w", err)
	}
	certificate := &servingCertificate{reader: mgr.GetAPIReader(), namespace: o.Namespace, name: r.endpoint.SecretName()}
	peer := &server.Peer{Address: r.peerAddress(o.Namespace), Certificate: certificate.read}
	o.Store.Contents.UsePeer(peer.Open)
	for _, run := range []everywhere{
		packages.awaitFirstRead,
		func(ctx context.Context) error {
			if certificate.await(ctx) != nil {
				return listener.Close()
			}
			go certificate.follow(ctx)
			return server.Run(ctx, server.Config{
				Listener: listener, Certificate: certificate, Client: clientset, Index: index, ReadIcon: packages.readIcon,
				Contents: o.Store.Contents.Open, Serving: func() { packages.serving.Store(true) },
			})
		},
	} {
		if err := mgr.Add(run); err != nil {
			return nil, fmt.Errorf("adding the server of PackageManifests: %w", err)
		}
	}
	return packages, r.setup(mgr)
}

// everywhere is a function that runs on standbys, too.
type everywhere manager.RunnableFunc

// Start runs the function.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection returns false.
func (everywhere) NeedLeaderElection() bool { return false }

// setup adds the controller of the registration to a manager. It reacts when the supervisor is being uninstalled.
func (r *registrar) setup(mgr ctrl.Manager) error {
	apiServices := metadataOf("apiregistration.k8s.io/v1", "APIService")
	err := watchInstallation(mgr, r).
		Named("packagemanifest-registration").
		WatchesMetadata(apiServices, enqueue(), named("", APIServiceName())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: apply.RateLimiter(), ReconciliationTimeout: time.Minute}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the registration of PackageManifests: %w", err)
	}
	return nil
}

// watchInstallation returns a builder of a controller that has requests after changes of the Deployment and of its namespace.
func watchInstallation(mgr ctrl.Manager, r *registrar) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).
		WatchesMetadata(namespaceMetadata(), enqueue(), named("", r.namespace)).
		Watches(&appsv1.Deployment{}, enqueue(), named(r.namespace, r.name))
}

// named returns the condition of events about one object. The namespace of a cluster-scoped one is empty.
func named(namespace, name string) builder.Predicates {
	return builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetName() == name && o.GetNamespace() == namespace
	}))
}

// enqueue returns a handler that makes the same request for every event.
func enqueue() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request {
		return []ctrl.Request{{}}
	})
}

// namespaceMetadata returns an object for the metadata of a namespace.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	return metadataOf(corev1.SchemeGroupVersion.String(), "Namespace")
}

// metadataOf returns an object for watching the metadata of a kind.
func metadataOf(version, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}}
}
