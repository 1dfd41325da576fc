package installplan

import (
	"context"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// unaware returns the name of a Subscription of the plan that does not show the current phase of
// the plan; empty when there is none. Deleted Subscriptions, and those being deleted, do not count.
func (r *Reconciler) unaware(ctx context.Context, p *operatorsv1alpha1.InstallPlan) (string, error) {
	for _, ref := range p.OwnerReferences {
		if ref.Kind != operatorsv1alpha1.SubscriptionKind {
			continue
		}
		shows, sure, err := r.aware(ctx, r.client, ref, p)
		if err == nil && shows && !sure {
			// The cache may lack the latest transition log.
			shows, _, err = r.aware(ctx, r.live, ref, p)
		}
		if err != nil {
			return "", err
		}
		if !shows {
			return ref.Name, nil
		}
	}
	return "", nil
}

// aware reports whether a Subscription, as the reader returns it, shows the current phase of the
// plan. It also reports true for a deleted Subscription. sure reports whether the answer is
// certain.
func (r *Reconciler) aware(ctx context.Context, from client.Reader, ref metav1.OwnerReference, p *operatorsv1alpha1.InstallPlan) (shows, sure bool, err error) {
	sub := &operatorsv1alpha1.Subscription{}
	err = from.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ref.Name}, sub, readOnly)
	if apierrors.IsNotFound(err) {
		return true, true, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("reading Subscription %s/%s: %w", p.Namespace, ref.Name, err)
	}
	if sub.UID != ref.UID || !sub.DeletionTimestamp.IsZero() {
		return true, true, nil
	}
	shows, sure = r.passages.shows(sub, p)
	return shows, sure, nil
}

// acknowledged returns how much longer a plan waits in its current phase for its Subscriptions;
// zero when it may leave the phase. The wait is limited to acknowledgeTimeout: a Subscription whose
// status cannot be written must not block an installation.
func (r *Reconciler) acknowledged(ctx context.Context, before *operatorsv1alpha1.InstallPlan, rec *record) (wait time.Duration, err error) {
	now := r.clock.Now()
	if rec.ready.IsZero() {
		rec.ready = now
	}
	name, err := r.unaware(ctx, before)
	if err != nil {
		return 0, err
	}
	waited := now.Sub(rec.ready)
	if name == "" {
		acknowledgements.WithLabelValues(outcomeShown).Observe(waited.Seconds())
		return 0, nil
	}
	if waited >= r.acknowledgeTimeout {
		acknowledgements.WithLabelValues(outcomeLate).Observe(waited.Seconds())
		log.FromContext(ctx).Info("Moving plan on though a Subscription does not show its phase", "phase", before.Status.Phase, "Subscription", name, "waited", waited.String())
		return 0, nil
	}
	return r.acknowledgeTimeout - waited, nil
}
