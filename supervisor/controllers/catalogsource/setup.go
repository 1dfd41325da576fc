package catalogsource

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

// workers is the number of CatalogSources that are reconciled concurrently.
const workers = 4

// First and last pause of the exponential back-off after failures.
const (
	firstRetry = time.Second
	lastRetry  = 2 * time.Minute
)

// Options configures the controller.
type Options struct {
	// Store follows the catalogs.
	Store *catalogs.Store
	// Clock provides the current time; the real clock if nil.
	Clock clock.PassiveClock
	// Config configures how catalogs run.
	Config Config
	// Sources are the cluster's settings for registries; nil for none.
	Sources *imagesources.Settings
	// Policies are the rules for signatures; nil for none.
	Policies *imagepolicy.Policies
}

// reconcileTimeout limits one reconciliation, so that a hanging call cannot block a worker. Other
// controllers that write use the same limit.
const reconcileTimeout = 5 * time.Minute

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Sources == nil {
		o.Sources = imagesources.New(sources.Paths{}, nil)
	}
	if o.Policies == nil {
		o.Policies = imagepolicy.New("")
	}
	o.Config.Settings = o.Config.WithDefaults()
	objects, err := newObjectCache(mgr)
	if err != nil {
		return err
	}
	images := digest.NewResolver(digest.Options{
		Reader: mgr.GetAPIReader(), Clock: o.Clock, Sources: o.Sources, Policies: o.Policies,
		PlainHTTP: o.Config.PlainHTTP, SkipTLSVerify: o.Config.SkipTLSVerify,
	})
	r, err := newReconciler(mgr, o, objects, images)
	if err != nil {
		return err
	}
	m := &mapper{reader: mgr.GetCache()}
	toOwner := handler.EnqueueRequestsFromMapFunc(owner)
	err = ctrl.NewControllerManagedBy(mgr).
		Named("catalogsource").
		For(catalogs.NewObject()).
		Watches(&appsv1.Deployment{}, toOwner).
		WatchesMetadata(namespaceMetadata(), handler.EnqueueRequestsFromMapFunc(m.inNamespace), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(source.Channel(o.Store.Listen(), &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(images.Events(), &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(o.Sources.Changes(), handler.EnqueueRequestsFromMapFunc(m.all))).
		WatchesRawSource(source.Channel(o.Policies.Changes(), handler.EnqueueRequestsFromMapFunc(m.all))).
		WatchesRawSource(source.Kind[client.Object](objects, &corev1.Service{}, toOwner)).
		WatchesRawSource(source.Kind[client.Object](objects, &corev1.ServiceAccount{}, toOwner)).
		WatchesRawSource(source.Kind[client.Object](objects, &networkingv1.NetworkPolicy{}, toOwner)).
		WatchesRawSource(source.Kind[client.Object](objects, &policyv1.PodDisruptionBudget{}, toOwner)).
		WatchesRawSource(source.Kind[client.Object](objects, &corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(catalog))).
		WatchesRawSource(source.Kind[client.Object](objects, configMapMetadata(), handler.EnqueueRequestsFromMapFunc(m.servedFrom))).
		WatchesRawSource(source.Kind[client.Object](objects, &corev1.Node{}, handler.EnqueueRequestsFromMapFunc(m.all), nodeChanged())).
		WithOptions(controller.Options{
			EnableWarmup: new(true), MaxConcurrentReconciles: workers, RateLimiter: apply.RateLimiter(), ReconciliationTimeout: reconcileTimeout,
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the CatalogSource controller: %w", err)
	}
	if err := mgr.Add(images); err != nil {
		return fmt.Errorf("adding the resolver of digests: %w", err)
	}
	return nil
}

func newReconciler(mgr ctrl.Manager, o Options, objects cache.Cache, images *digest.Resolver) (*reconciler, error) {
	discover, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	cached, live, writer := mgr.GetCache(), mgr.GetAPIReader(), mgr.GetClient()
	recorder := mgr.GetEventRecorder("chandlery-catalogsource")
	version := &serverVersion{discover: discover, clock: o.Clock}
	catalogObjects := &catalogObjects{
		cached: map[schema.GroupVersionKind]client.Reader{
			deployment.KindDeployment: cached, deployment.KindService: objects, deployment.KindServiceAccount: objects,
			deployment.KindNetworkPolicy: objects, deployment.KindBudget: objects,
		},
		live: live, client: writer,
	}
	return &reconciler{
		reader: cached, client: writer, version: version,
		hosted: &hostedReconciler{
			observer:       &observer{reader: cached, objects: objects, live: live, catalogObjects: catalogObjects, version: version},
			catalogObjects: catalogObjects, images: images, recorder: recorder, clock: o.Clock, config: &o.Config,
			configMaps: &configMaps{
				cached: objects, live: live, client: writer, catalogObjects: catalogObjects, clock: o.Clock,
				owners: &configMapOwners{cached: objects, live: live, client: writer, recorder: recorder, clock: o.Clock},
			},
			rebalancer:   &rebalancer{catalogObjects: catalogObjects, recorder: recorder, clock: o.Clock},
			certificates: &certificates{cached: objects, live: live, client: writer, clock: o.Clock},
			secrets:      &secretChecker{reader: live, clock: o.Clock},
		},
		settings: &imageSettings{reader: live, settings: o.Sources, policies: o.Policies},
		status:   &statusWriter{client: writer, store: o.Store, version: version, recorder: recorder, clock: o.Clock},
		failures: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
	}, nil
}

// owner returns requests for the CatalogSources that own an object.
func owner(_ context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, ref := range ownerRefs(object) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: ref.Name}})
	}
	return requests
}

// catalog returns a request for the CatalogSource in the labels of a pod.
func catalog(_ context.Context, object client.Object) []reconcile.Request {
	name := catalogOfPod(object)
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// mapper maps changed objects to requests for CatalogSources.
type mapper struct{ reader client.Reader }

// inNamespace returns requests for the CatalogSources in a Namespace.
func (m *mapper) inNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	return m.selected(ctx, func(*unstructured.Unstructured) bool { return true }, client.InNamespace(object.GetName()))
}

// servedFrom returns requests for the CatalogSources that use a ConfigMap: as their catalog, as
// their selection, or as a copy.
func (m *mapper) servedFrom(ctx context.Context, object client.Object) []reconcile.Request {
	// A CatalogSource may use a ConfigMap that another one owns.
	return append(owner(ctx, object), m.selected(ctx, func(u *unstructured.Unstructured) bool {
		name, _, _ := unstructured.NestedString(u.Object, "spec", "configMap")
		return name == object.GetName() || strings.TrimSpace(u.GetAnnotations()[api.AnnotationCatalogFilter]) == object.GetName() ||
			u.GetAnnotations()[api.AnnotationImageConfig] == object.GetName() || u.GetAnnotations()[api.AnnotationImageVerify] == object.GetName()
	}, client.InNamespace(object.GetNamespace()))...)
}

// all returns requests for all CatalogSources.
func (m *mapper) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return m.selected(ctx, func(*unstructured.Unstructured) bool { return true })
}

// selected returns requests for the CatalogSources that keep accepts. It returns none if the cache
// cannot be read, which only happens while it stops.
func (m *mapper) selected(ctx context.Context, keep func(*unstructured.Unstructured) bool, opts ...client.ListOption) []reconcile.Request {
	list := catalogs.NewList()
	if err := m.reader.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if keep(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// nodeChanged admits updates that can affect the placement of replicas. It drops heartbeats.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1.Node)
		after, is := e.ObjectNew.(*corev1.Node)
		return !was || !is || !equality.Semantic.DeepEqual(before.Status, after.Status) ||
			!equality.Semantic.DeepEqual(before.Spec, after.Spec) || !equality.Semantic.DeepEqual(before.Labels, after.Labels)
	}}
}
