package clusterserviceversion

import (
	"context"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// orphanDelay is how long the owner of an APIService must be absent before the APIService is
// deleted. A ClusterServiceVersion that is recreated in that time keeps its API.
const orphanDelay = 10 * time.Second

// orphanReconciler deletes APIServices whose labels name a ClusterServiceVersion that does not exist.
// An APIService without a server makes the discovery of all APIs incomplete. It has one worker.
type orphanReconciler struct {
	client client.Client // reads from the cache
	live   client.Reader // reads past the cache
	clock  clock.PassiveClock
	events events.EventRecorder
	absent map[string]absence // by the name of the APIService
}

// absence states since when the owner of an APIService is absent.
type absence struct {
	uid   types.UID // of the APIService
	owner types.NamespacedName
	since time.Time
}

// setupOrphans adds the controller of orphaned APIServices to a manager.
func setupOrphans(mgr ctrl.Manager, c clock.PassiveClock) error {
	r := &orphanReconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: c,
		events: mgr.GetEventRecorder("chandlery-apiservice"), absent: map[string]absence{},
	}
	owned := predicate.NewPredicateFuncs(func(o client.Object) bool {
		_, named := ownership.Of(o.GetLabels())
		return named
	})
	deletions := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("apiservice").
		For(apiServiceMetadata(), builder.WithPredicates(owned)).
		Watches(&operatorsv1alpha1.ClusterServiceVersion{}, handler.EnqueueRequestsFromMapFunc(r.ofVersion),
			builder.WithPredicates(deletions)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1, EnableWarmup: new(true), ReconciliationTimeout: reconcileTimeout, RateLimiter: apply.RateLimiter(),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of orphaned APIServices: %w", err)
	}
	return nil
}

func apiServiceMetadata() *metav1.PartialObjectMetadata {
	service := &metav1.PartialObjectMetadata{}
	service.SetGroupVersionKind(webhook.APIServiceKind())
	return service
}

// ofVersion maps a ClusterServiceVersion to the APIServices whose labels name it.
func (r *orphanReconciler) ofVersion(ctx context.Context, obj client.Object) []reconcile.Request {
	csv, is := obj.(*operatorsv1alpha1.ClusterServiceVersion)
	if !is {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(webhook.APIServiceKind())
	if err := r.client.List(ctx, list, ownership.Labels(csv), readOnly); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// Reconcile deletes an APIService whose owner has been absent for orphanDelay.
func (r *orphanReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	service := apiServiceMetadata()
	err := client.IgnoreNotFound(r.client.Get(ctx, req.NamespacedName, service))
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("getting APIService %s: %w", req.Name, err)
	}
	// An APIService that does not exist has no labels.
	owner, named := ownership.Of(service.Labels)
	if !named || !service.DeletionTimestamp.IsZero() {
		delete(r.absent, req.Name)
		return ctrl.Result{}, nil
	}
	exists, err := r.ownerExists(ctx, owner)
	if err != nil {
		return ctrl.Result{}, err
	}
	if exists {
		delete(r.absent, req.Name)
		return ctrl.Result{}, nil
	}
	now := absence{uid: service.UID, owner: owner, since: r.clock.Now()}
	if before := r.absent[req.Name]; before.uid == now.uid && before.owner == now.owner {
		now.since = before.since
	}
	r.absent[req.Name] = now
	if left := orphanDelay - r.clock.Since(now.since); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	// The precondition is the version in the cache, whose labels were read.
	if err := apply.Delete(ctx, r.client, service); err != nil {
		return apply.RequeueConflict(err)
	}
	delete(r.absent, req.Name)
	return ctrl.Result{}, r.report(ctx, req.Name, owner)
}

// ownerExists reports whether a ClusterServiceVersion exists that is not a copy. It reads the API
// server if the cache lacks it, because the cache lags behind.
func (r *orphanReconciler) ownerExists(ctx context.Context, owner types.NamespacedName) (bool, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	found, err := isOriginal(ctx, r.client, owner, csv)
	if found || err != nil {
		return found, err
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	return isOriginal(ctx, r.live, owner, meta)
}

// isOriginal reads a ClusterServiceVersion, and reports whether it exists and is not a copy.
func isOriginal(ctx context.Context, from client.Reader, key types.NamespacedName, csv client.Object) (bool, error) {
	err := from.Get(ctx, key, csv)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting ClusterServiceVersion %s: %w", key, err)
	}
	_, copied := csv.GetLabels()[operatorsv1alpha1.CopiedLabelKey]
	return !copied, nil
}

// report records the deletion of an APIService: in the log, and in an Event about the namespace of
// the owner if it exists.
func (r *orphanReconciler) report(ctx context.Context, name string, owner types.NamespacedName) error {
	logf.FromContext(ctx).Info("Deleted an APIService whose owner does not exist", "clusterServiceVersion", owner)
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.live.Get(ctx, types.NamespacedName{Name: owner.Namespace}, ns)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	r.events.Eventf(ns, nil, corev1.EventTypeNormal, api.ReasonOrphanDeleted, "Delete", "%s",
		api.EventNote(fmt.Sprintf("deleted APIService %s: ClusterServiceVersion %s does not exist", name, owner)))
	return nil
}
