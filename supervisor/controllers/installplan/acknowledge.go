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

// phaseGate delays the next phase of a plan until its Subscriptions show the current one.
type phaseGate struct {
	cached, live client.Reader
	entries      *phaseEntries
	// timeout bounds the delay: a Subscription whose status cannot be written must not block an
	// installation.
	timeout time.Duration
}

// wait returns how much longer a plan that has waited already stays in its current phase; zero when
// it may leave the phase.
func (g *phaseGate) wait(ctx context.Context, p *operatorsv1alpha1.InstallPlan, waited time.Duration) (time.Duration, error) {
	name, err := g.outdated(ctx, p)
	if err != nil {
		return 0, err
	}
	if name == "" {
		acknowledgements.WithLabelValues(outcomeShown).Observe(waited.Seconds())
		return 0, nil
	}
	if waited >= g.timeout {
		acknowledgements.WithLabelValues(outcomeLate).Observe(waited.Seconds())
		log.FromContext(ctx).Info("Leaving a phase that a Subscription does not show", "phase", p.Status.Phase, "Subscription", name, "waited", waited.String())
		return 0, nil
	}
	return g.timeout - waited, nil
}

// outdated returns the name of a Subscription of the plan that does not show the current phase of
// the plan; empty when there is none. Deleted Subscriptions, and those being deleted, do not count.
func (g *phaseGate) outdated(ctx context.Context, p *operatorsv1alpha1.InstallPlan) (string, error) {
	for _, ref := range p.OwnerReferences {
		if ref.Kind != operatorsv1alpha1.SubscriptionKind {
			continue
		}
		shown, sure, err := g.shown(ctx, g.cached, ref, p)
		if err == nil && shown && !sure {
			// The cache may lack the latest transition log.
			shown, _, err = g.shown(ctx, g.live, ref, p)
		}
		if err != nil {
			return "", err
		}
		if !shown {
			return ref.Name, nil
		}
	}
	return "", nil
}

// shown reports whether a Subscription, as the reader returns it, shows the current phase of the
// plan. It also reports true for a deleted Subscription. sure reports whether the answer is
// certain.
func (g *phaseGate) shown(ctx context.Context, from client.Reader, ref metav1.OwnerReference, p *operatorsv1alpha1.InstallPlan) (shown, sure bool, err error) {
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
	shown, sure = g.entries.shown(sub, p)
	return shown, sure, nil
}
