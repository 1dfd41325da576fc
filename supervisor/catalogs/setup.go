package catalogs

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// reconcileTimeout limits one reconciliation, so that a hanging call cannot block a worker.
// Reconciliations only read caches.
const reconcileTimeout = time.Minute

// Setup adds the store and its controller to a manager. The store follows every CatalogSource, at
// its address or at the replicas in its EndpointSlices. Both run on standbys too.
func Setup(mgr ctrl.Manager, store *Store) error {
	if err := mgr.Add(store); err != nil {
		return fmt.Errorf("adding the catalog store: %w", err)
	}
	if store.Contents != nil {
		startup := store.Contents.startup
		startup.reader, startup.done = mgr.GetCache(), make(chan struct{})
		if err := mgr.Add(startup); err != nil {
			return fmt.Errorf("adding the startup of catalog contents: %w", err)
		}
	}
	r := &reconciler{reader: mgr.GetCache(), live: mgr.GetAPIReader(), store: store}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("catalogs").
		For(NewObject(), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.catalogsOfSlice)).
		// An endpoint may arrive before its pod.
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(catalogOfLabel), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(controller.Options{NeedLeaderElection: new(false), ReconciliationTimeout: reconcileTimeout}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the catalogs controller: %w", err)
	}
	return nil
}

// catalogOfLabel returns a request for the catalog in an object's label.
func catalogOfLabel(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[api.LabelCatalogSource]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// reconciler updates the store from CatalogSources.
type reconciler struct {
	reader client.Reader
	// live reads certificates.
	live  client.Reader
	store *Store
}

// catalogsOfSlice returns requests for the catalogs whose replicas an EndpointSlice can hold. Slices
// inherit the labels of their Service. Slices of OLM's Services lack the catalog's label but have the
// name of the Service.
func (r *reconciler) catalogsOfSlice(ctx context.Context, o client.Object) []reconcile.Request {
	if requests := catalogOfLabel(ctx, o); requests != nil {
		return requests
	}
	sources := NewList()
	if err := r.reader.List(ctx, sources, client.InNamespace(o.GetNamespace())); err != nil {
		log.FromContext(ctx).Error(err, "Listing CatalogSources failed", "endpointSlice", client.ObjectKeyFromObject(o).String())
		return nil
	}
	var requests []reconcile.Request
	for i := range sources.Items {
		source, err := Decode(&sources.Items[i])
		if err == nil && ServiceName(source) == o.GetLabels()[discoveryv1.LabelServiceName] {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(source)})
		}
	}
	return requests
}

// Reconcile starts, updates or stops following one catalog.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	u := NewObject()
	if err := r.reader.Get(ctx, req.NamespacedName, u); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.store.Remove(req.NamespacedName)
			r.store.Contents.forget(r.store.ctx, req.NamespacedName) //nolint:contextcheck // the removal outlives the call
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading CatalogSource %s: %w", req, err)
	}
	if r.store.Contents.identify(r.store.ctx, req.NamespacedName, u.GetUID()) { //nolint:contextcheck // the removal outlives the call
		r.store.Remove(req.NamespacedName) // it was deleted and created again
	}
	source, err := Decode(u)
	if err != nil {
		return ctrl.Result{}, err
	}
	if reason, problem := SpecProblem(source); problem != "" {
		log.FromContext(ctx).V(1).Info("Not following catalog", "reason", reason, "problem", problem)
		r.store.Remove(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if !Hosted(source) {
		return r.followAddress(ctx, source)
	}
	return r.followReplicas(ctx, source)
}

// followAddress updates the store with the address of a catalog and the certificates for it. Certificates are read at
// each refresh interval and not watched: the supervisor has no permission to list Secrets.
func (r *reconciler) followAddress(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(source)
	security, err := dialtls.Load(ctx, r.live, source.Namespace, source.Annotations)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the certificates of CatalogSource %s: %w", key, err)
	}
	return r.again(security), r.store.Follow(key, Address(source), security)
}

// again returns when to read certificates again.
func (r *reconciler) again(security dialtls.Security) ctrl.Result {
	if !security.Settings.Enabled {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(r.store.settings.Refresh, 0.1)}
}

// followReplicas updates the store with the replicas of a catalog's Service, and with the authorities of those with TLS.
func (r *reconciler) followReplicas(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(source)
	endpoints, err := r.endpoints(ctx, source)
	if err != nil {
		return ctrl.Result{}, err
	}
	var security dialtls.Security
	if slices.ContainsFunc(endpoints, func(e replicas.Endpoint) bool { return e.Secured }) {
		security, err = dialtls.LoadHosted(ctx, r.live, types.NamespacedName{Namespace: source.Namespace, Name: AuthorityName(source)}, serverName(source))
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("reading the authorities of CatalogSource %s: %w", key, err)
		}
	}
	return r.again(security), r.store.FollowReplicas(key, Address(source), security, endpoints)
}

// endpoints returns the replicas of a catalog's Service.
func (r *reconciler) endpoints(ctx context.Context, source *operatorsv1alpha1.CatalogSource) ([]replicas.Endpoint, error) {
	var found discoveryv1.EndpointSliceList
	ofService := client.MatchingLabels{discoveryv1.LabelServiceName: ServiceName(source)}
	if err := r.reader.List(ctx, &found, client.InNamespace(source.Namespace), ofService); err != nil {
		return nil, fmt.Errorf("listing the EndpointSlices of Service %s/%s: %w", source.Namespace, ServiceName(source), err)
	}
	var pods corev1.PodList
	ofCatalog := client.MatchingLabels{api.LabelManaged: LabelManagedValue, api.LabelCatalogSource: source.Name}
	if err := r.reader.List(ctx, &pods, client.InNamespace(source.Namespace), ofCatalog, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods of CatalogSource %s/%s: %w", source.Namespace, source.Name, err)
	}
	known := make(map[types.UID]*corev1.Pod, len(pods.Items))
	for i := range pods.Items {
		known[pods.Items[i].UID] = &pods.Items[i]
	}
	ofReplicas := slicesOfCatalog(found.Items, source.Name, known)
	endpoints := withPodInfo(Endpoints(ofReplicas), known)
	if servesTLS(ofReplicas) {
		endpoints = withTLS(endpoints, known)
	}
	return endpoints, nil
}
