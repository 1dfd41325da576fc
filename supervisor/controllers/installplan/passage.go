package installplan

import (
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/chandlery/chandlery/supervisor/history"
)

// passages holds the resource version with which each plan entered its stage. A plan may enter a
// stage twice, and a Subscription that shows the first time does not show the second. The methods
// are safe for concurrent use; the zero value is ready to use.
type passages struct {
	mu    sync.Mutex
	plans map[types.UID]passage
}

type passage struct {
	stage history.Stage
	since uint64
}

// noting returns a predicate that accepts every event of a plan and records the plan.
func (s *passages) noting() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			if p, ok := e.Object.(*operatorsv1alpha1.InstallPlan); ok {
				s.note(p, e.IsInInitialList)
			}
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if p, ok := e.ObjectNew.(*operatorsv1alpha1.InstallPlan); ok {
				s.note(p, false)
			}
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.plans, e.Object.GetUID())
			return true
		},
	}
}

// note records a plan. A plan of the initial list (before) has an unknown start of its stage.
func (s *passages) note(p *operatorsv1alpha1.InstallPlan, before bool) {
	now := passage{stage: history.StageOf(p), since: history.Version(p.ResourceVersion)}
	if before {
		now.since = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.plans[p.UID]; known && last.stage == now.stage {
		return
	}
	if s.plans == nil {
		s.plans = map[types.UID]passage{}
	}
	s.plans[p.UID] = now
}

// since returns the resource version with which a plan entered its stage; zero when it is unknown.
// For a plan whose event has not arrived yet, it returns the resource version of that plan.
func (s *passages) since(p *operatorsv1alpha1.InstallPlan) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.plans[p.UID]
	if !known || last.stage != history.StageOf(p) {
		return history.Version(p.ResourceVersion)
	}
	return last.since
}

// shows reports whether a Subscription shows the stage of a plan, and this entry into it.
//
// sure is false where the start of the stage is unknown. Then shows is true unless the transition
// log of the Subscription is ahead of its status.
func (s *passages) shows(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) (shows, sure bool) {
	if !history.Shows(&sub.Status, p) {
		return false, true
	}
	since := s.since(p)
	if since == 0 {
		// An unreadable log counts as empty.
		ledger, _ := history.Read(sub)
		return !ledger.Ahead(&sub.Status), false
	}
	return history.Version(sub.Status.InstallPlanRef.ResourceVersion) >= since, true
}
