package installplan

import (
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/chandlery/chandlery/supervisor/history"
)

// phaseEntries holds the resource version with which each plan entered its stage. A plan may enter a
// stage twice, and a Subscription that shows the first time does not show the second. The methods
// are safe for concurrent use; the zero value is ready to use.
type phaseEntries struct {
	mu    sync.Mutex
	plans map[types.UID]phaseEntry
}

type phaseEntry struct {
	stage history.Stage
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
	now := phaseEntry{stage: history.StageOf(p), since: history.Version(p.ResourceVersion)}
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
	if !known || last.stage != history.StageOf(p) {
		return history.Version(p.ResourceVersion)
	}
	return last.since
}

// shown reports whether a Subscription shows the stage of a plan, and this entry into it.
//
// sure is false where the start of the stage is unknown. Then shown is true unless the transition
// log of the Subscription is ahead of its status.
func (e *phaseEntries) shown(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) (shown, sure bool) {
	if !history.Shows(&sub.Status, p) {
		return false, true
	}
	since := e.since(p)
	if since == 0 {
		// An unreadable log counts as empty.
		ledger, _ := history.Read(sub)
		return !ledger.Ahead(&sub.Status), false
	}
	return history.Version(sub.Status.InstallPlanRef.ResourceVersion) >= since, true
}
