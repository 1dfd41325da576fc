package installplan

import (
	"sync"
	"sync/atomic"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chandlery/chandlery/supervisor/api"
)

// planRecords holds a record of each plan. It affects when a plan is reconciled, and never what is
// installed: a new process begins without it. It is safe for concurrent use; the zero value is ready
// to use.
type planRecords struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*planRecord
}

// planRecord is the state of one plan that the controller keeps between two reconciles. Only the worker that
// reconciles the plan uses it, except for triggered.
type planRecord struct {
	uid        types.UID
	generation int64
	backoff    backoff
	phases     phaseRecord
	// outcome is the result of a pass whose status is not written yet.
	outcome *outcome
	// warned holds the last note about each step, by index.
	warned map[int]string
	// retryNow is the value of triggered when the present pass began.
	retryNow bool
	// triggered reports whether an event happened that the plan may wait for.
	triggered atomic.Bool
}

// phaseRecord holds the last phases of a plan.
type phaseRecord struct {
	// hasWritten reports whether this process has written a phase. written is that phase, and version the
	// resource version of the plan after the write.
	hasWritten bool
	written    operatorsv1alpha1.InstallPlanPhase
	version    string
	// seen is the phase that the last pass found.
	seen operatorsv1alpha1.InstallPlanPhase
	// otherClientSince is when a pass found a phase that another client wrote; zero for a phase of this
	// process.
	otherClientSince time.Time
	// readySince is since when only Subscriptions that do not show the present phase delay the next one.
	readySince time.Time
}

// outcome is the status of a plan before and after a pass.
type outcome struct {
	before, after operatorsv1alpha1.InstallPlanStatus
	// cause is the annotation with the cause after the pass.
	cause      string
	generation int64
}

// get returns the record of a plan. A plan that was recreated with the same name has a new one.
func (m *planRecords) get(key types.NamespacedName, p *operatorsv1alpha1.InstallPlan) *planRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = map[types.NamespacedName]*planRecord{}
	}
	rec := m.records[key]
	if rec == nil || rec.uid != p.UID {
		rec = &planRecord{uid: p.UID, generation: p.Generation, warned: map[int]string{}}
		m.records[key] = rec
	}
	rec.retryNow = rec.triggered.Swap(false)
	if rec.generation != p.Generation {
		rec.generation = p.Generation
		rec.backoff.reset()
	}
	if rec.retryNow {
		rec.backoff.resume()
	}
	return rec
}

// forget removes the record of a deleted plan.
func (m *planRecords) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
}

// trigger ends the pause of a plan.
func (m *planRecords) trigger(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rec := m.records[key]; rec != nil {
		rec.triggered.Store(true)
	}
}

// isStale reports whether a plan was read from a cache that lacks the last write of this process.
func (r *planRecord) isStale(p *operatorsv1alpha1.InstallPlan) bool {
	if r.phases.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(p.ResourceVersion, r.phases.version)
	return err == nil && order < 0
}

// foreignPhaseWait returns how much longer a phase stays that another client wrote, so that watchers see
// it; zero for other phases.
func (r *planRecord) foreignPhaseWait(phase operatorsv1alpha1.InstallPlanPhase, now time.Time, minimum time.Duration) time.Duration {
	s := &r.phases
	if phase != s.seen {
		s.seen, s.readySince, s.otherClientSince = phase, time.Time{}, time.Time{}
	}
	if !s.hasWritten || phase == s.written {
		s.otherClientSince = time.Time{}
		return 0
	}
	if s.otherClientSince.IsZero() {
		s.otherClientSince, s.readySince = now, time.Time{}
		r.backoff.reset()
		r.outcome = nil
	}
	return max(0, s.otherClientSince.Add(minimum).Sub(now))
}

// recordWrite records that this process wrote the status of the plan.
func (r *planRecord) recordWrite(p *operatorsv1alpha1.InstallPlan) {
	s := &r.phases
	if !s.hasWritten || s.written != p.Status.Phase {
		r.backoff.enterPhase()
	}
	s.hasWritten, s.written, s.version = true, p.Status.Phase, p.ResourceVersion
	s.otherClientSince, s.readySince = time.Time{}, time.Time{}
	r.outcome = nil
}

// waited returns for how long only Subscriptions have delayed the next phase.
func (r *planRecord) waited(now time.Time) time.Duration {
	if r.phases.readySince.IsZero() {
		r.phases.readySince = now
	}
	return now.Sub(r.phases.readySince)
}

// storeOutcome stores the outcome of a pass.
func (r *planRecord) storeOutcome(before, after *operatorsv1alpha1.InstallPlan) {
	r.outcome = &outcome{
		before: *before.Status.DeepCopy(), after: *after.Status.DeepCopy(),
		cause: after.Annotations[api.AnnotationCause], generation: before.Generation,
	}
}

// restoreOutcome sets the stored outcome of a pass in a plan. It returns false when there is none, or the
// plan has changed since.
func (r *planRecord) restoreOutcome(p *operatorsv1alpha1.InstallPlan) bool {
	if r.outcome == nil || r.outcome.generation != p.Generation || !equality.Semantic.DeepEqual(r.outcome.before, p.Status) {
		r.outcome = nil
		return false
	}
	p.Status = *r.outcome.after.DeepCopy()
	if r.outcome.cause == "" {
		api.SetCause(p, nil)
		return true
	}
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationCause, r.outcome.cause)
	return true
}
