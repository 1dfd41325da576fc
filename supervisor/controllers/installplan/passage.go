package installplan

import (
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/chandlery/chandlery/supervisor/history"
)

// passages remembers since which version each plan is at its stage: a plan may come to
// a stage a second time, and a Subscription that tells of the first does not tell of
// that. Its methods may be called from any goroutine; the zero value is ready.
type passages struct {
	mu    sync.Mutex
	plans map[types.UID]passage
}

type passage struct {
	stage history.Stage
	since uint64
}

// noting gives a predicate that lets every event of plans pass, and notes it.
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

// note notes a version of a plan. Of one that was there before the process began it is
// not known since when it is where it is.
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

// since gives the version with which a plan came to the stage that it is at, zero when
// that is not known. A plan that was read before its event came is there since now.
func (s *passages) since(p *operatorsv1alpha1.InstallPlan) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.plans[p.UID]
	if !known || last.stage != history.StageOf(p) {
		return history.Version(p.ResourceVersion)
	}
	return last.since
}

// shows says whether a Subscription tells the stage that a plan is at, and means this
// time. Sure is whether that is known: of a plan that was there before the process began
// the Subscription may tell an earlier time, unless its ledger has more to tell.
func (s *passages) shows(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) (shows, sure bool) {
	if !history.Shows(&sub.Status, p) {
		return false, true
	}
	since := s.since(p)
	if since == 0 {
		// A ledger that cannot be read says nothing, and is begun anew.
		ledger, _ := history.Read(sub)
		return !ledger.Ahead(&sub.Status), false
	}
	return history.Version(sub.Status.InstallPlanRef.ResourceVersion) >= since, true
}
