package subscription

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// A Subscription that is annotated and deleted in one breath is gone before the finalizer is
// set that would keep it until its operator has gone. It is brought back for that, and
// deleted again at once, so that all goes on as if it had been kept.

const (
	// annotationBroughtBack, on a Subscription, says that it has been deleted already.
	annotationBroughtBack = "chandlery.dev/brought-back"
	// hurry is how long after its deletion a Subscription is brought back. A process that
	// comes to lead later leaves it to the one before it, which saw the same.
	hurry = time.Minute
)

// tooSoon says of a Subscription that is gone whether it went too soon to take its operator
// along: without having been kept for a moment. That it has the finalizer says nothing: the
// API server drops what gets its first one while it is being deleted.
func tooSoon(sub *operatorsv1alpha1.Subscription) bool {
	return sub.Spec != nil && uninstalls(sub) && sub.DeletionTimestamp.IsZero()
}

// hurried remembers, by namespace, Subscriptions that went too soon.
type hurried struct {
	mu   sync.Mutex
	gone map[string][]departed
}

type departed struct {
	subscription *operatorsv1alpha1.Subscription
	at           time.Time
}

func (h *hurried) note(sub *operatorsv1alpha1.Subscription, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone == nil {
		h.gone = map[string][]departed{}
	}
	h.gone[sub.Namespace] = append(h.gone[sub.Namespace], departed{sub, now})
}

// take gives those of a namespace that went a short while ago, and forgets all of it.
func (h *hurried) take(namespace string, now time.Time) []departed {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.gone[namespace]
	delete(h.gone, namespace)
	return slices.DeleteFunc(list, func(d departed) bool { return now.Sub(d.at) > hurry })
}

// again remembers one that could not be brought back.
func (h *hurried) again(d departed) { h.note(d.subscription, d.at) }

// watchingHaste gives a predicate that lets everything pass, and remembers what went too
// soon. A Subscription that the cache does not have whole is not remembered: what is made of
// it would lack a part.
func (r *Reconciler) watchingHaste() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		if sub, ok := e.Object.(*operatorsv1alpha1.Subscription); ok && tooSoon(sub) && !informer.Trimmed(sub) {
			r.hurried.note(sub, r.clock.Now())
		}
		return true
	}}
}

// bringBack makes the Subscriptions again that went too soon, and deletes those that were
// made again; they have no say in what is to be installed.
func (r *Reconciler) bringBack(ctx context.Context, o *observation) error {
	var errs []error
	for _, d := range r.hurried.take(o.namespace, r.clock.Now()) {
		if err := r.makeAgain(ctx, d.subscription); err != nil {
			r.hurried.again(d)
			errs = append(errs, err)
		}
	}
	o.subscriptions = slices.DeleteFunc(o.subscriptions, func(sub *operatorsv1alpha1.Subscription) bool {
		if sub.Annotations[annotationBroughtBack] == "" {
			return false
		}
		errs = append(errs, r.remove(ctx, sub, operatorsv1alpha1.SubscriptionKind))
		return true
	})
	return errors.Join(errs...)
}

func (r *Reconciler) makeAgain(ctx context.Context, gone *operatorsv1alpha1.Subscription) error {
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: gone.Namespace, Name: gone.Name, Labels: gone.Labels, Annotations: map[string]string{}},
		Spec:       gone.Spec.DeepCopy(),
	}
	maps.Copy(sub.Annotations, gone.Annotations)
	sub.Annotations[annotationBroughtBack] = "true"
	controllerutil.AddFinalizer(sub, finalizerUninstall)
	err := r.client.Create(ctx, sub, client.FieldOwner(apply.FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // somebody wants the package again, or the namespace goes with all that is in it
	case err != nil:
		return fmt.Errorf("bringing Subscription %s/%s back to uninstall its operator: %w", gone.Namespace, gone.Name, err)
	}
	log.FromContext(ctx).Info("Brought back what was deleted too soon to uninstall it", "subscription", sub.Name, "package", sub.Spec.Package)
	return r.remove(ctx, sub, operatorsv1alpha1.SubscriptionKind)
}
