package installplan

import (
	"context"
	"fmt"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
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

// phaseEntries holds the resource version with which each plan entered its stage. A plan may enter a
// stage twice, and a Subscription that shows the first time does not show the second. The methods
// are safe for concurrent use; the zero value is ready to use.
type phaseEntries struct {
	mu    sync.Mutex
	plans map[types.UID]phaseEntry
}

type phaseEntry struct {
	stage transitionlog.Stage
	since uint64
}

// predicate returns a predicate that accepts every event of a plan and records the plan.
func (e *phaseEntries) predicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(ev event.CreateEvent) bool {
			if p, ok := ev.Object.(*operatorsv1alpha1.InstallPlan); ok {
				e.add(p, ev.IsInInitialList)
			}
			return true
		},
		UpdateFunc: func(ev event.UpdateEvent) bool {
			if p, ok := ev.ObjectNew.(*operatorsv1alpha1.InstallPlan); ok {
				e.add(p, false)
			}
			return true
		},
		DeleteFunc: func(ev event.DeleteEvent) bool {
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.plans, ev.Object.GetUID())
			return true
		},
	}
}

// add records a plan. A plan of the initial list (before) has an unknown start of its stage.
func (e *phaseEntries) add(p *operatorsv1alpha1.InstallPlan, before bool) {
	now := phaseEntry{stage: transitionlog.StageOf(p), since: transitionlog.Version(p.ResourceVersion)}
	if before {
		now.since = 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if last, known := e.plans[p.UID]; known && last.stage == now.stage {
		return
	}
	if e.plans == nil {
		e.plans = map[types.UID]phaseEntry{}
	}
	e.plans[p.UID] = now
}

// since returns the resource version with which a plan entered its stage; zero when it is unknown.
// For a plan whose event has not arrived yet, it returns the resource version of that plan.
func (e *phaseEntries) since(p *operatorsv1alpha1.InstallPlan) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, known := e.plans[p.UID]
	if !known || last.stage != transitionlog.StageOf(p) {
		return transitionlog.Version(p.ResourceVersion)
	}
	return last.since
}

// shown reports whether a Subscription shows the stage of a plan, and this entry into it.
//
// sure is false where the start of the stage is unknown. Then shown is true unless the transition
// log of the Subscription is ahead of its status.
func (e *phaseEntries) shown(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) (shown, sure bool) {
	if !transitionlog.Shows(&sub.Status, p) {
		return false, true
	}
	since := e.since(p)
	if since == 0 {
		// An unreadable log counts as empty.
		recorded, _ := transitionlog.Read(sub)
		return !recorded.Ahead(&sub.Status), false
	}
	return transitionlog.Version(sub.Status.InstallPlanRef.ResourceVersion) >= since, true
}
