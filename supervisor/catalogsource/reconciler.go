package catalogsource

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/connectivity"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/event"
)

// conflictDelay is how soon an object is looked at again that somebody else
// wrote meanwhile.
const conflictDelay = 50 * time.Millisecond

// stateReader tells what is known of a catalog.
type stateReader interface {
	State(key types.NamespacedName) (catalogs.State, bool)
}

// Reconciler keeps the status of one CatalogSource true.
type Reconciler struct {
	reader   client.Reader
	client   client.Client
	store    stateReader
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// Reconcile derives the status and writes it when it says something new.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	u := catalogs.NewObject()
	if err := r.reader.Get(ctx, req.NamespacedName, u); err != nil {
		if apierrors.IsNotFound(err) {
			forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading CatalogSource %s: %w", req, err)
	}
	source, err := catalogs.Decode(u)
	if err != nil {
		return ctrl.Result{}, err
	}
	state, followed := r.store.State(req.NamespacedName)
	observe(req.NamespacedName, state.Ready() && state.Address == source.Spec.Address)
	status := derive(source, state, followed, metav1.NewTime(r.clock.Now()).Rfc3339Copy())
	if equality.Semantic.DeepEqual(source.Status, status) {
		return ctrl.Result{}, nil
	}
	if err := r.write(ctx, u, status); err != nil {
		return silently(err)
	}
	r.announce(u, source.Status, status)
	return ctrl.Result{}, nil
}

// write replaces the status as it was read. The fields that are no longer there
// have to go, so it is a patch from the old to the new. It carries the version
// that was read: a leader that has been replaced must not write over its
// successor's.
func (r *Reconciler) write(ctx context.Context, u *unstructured.Unstructured, status operatorsv1alpha1.CatalogSourceStatus) error {
	text, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encoding the status of CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(text, &content); err != nil {
		return fmt.Errorf("encoding the status of CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	after := u.DeepCopy()
	after.Object["status"] = content
	if err := r.client.Status().Patch(ctx, after, client.MergeFromWithOptions(u, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of CatalogSource %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return nil
}

// silently turns a conflict into another try: somebody else wrote the object,
// and what they wrote is on its way here.
func silently(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// announce makes an Event of what a person would want to be told.
func (r *Reconciler) announce(u *unstructured.Unstructured, before, after operatorsv1alpha1.CatalogSourceStatus) {
	if after.Message != "" && after.Message != before.Message {
		r.recorder.Eventf(u, nil, corev1.EventTypeWarning, string(after.Reason), "Connect", "%s", event.Note(after.Message))
		return
	}
	was, is := before.GRPCConnectionState, after.GRPCConnectionState
	if is == nil || (was != nil && was.LastObservedState == is.LastObservedState) {
		return
	}
	kind := corev1.EventTypeNormal
	if is.LastObservedState == connectivity.TransientFailure.String() {
		kind = corev1.EventTypeWarning
	}
	r.recorder.Eventf(u, nil, kind, "ConnectionState", "Connect", "%s",
		event.Note("connection to "+is.Address+" is "+is.LastObservedState))
}
