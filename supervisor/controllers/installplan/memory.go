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

// memory is what the controller remembers of the plans between two passes. Nothing
// in it decides what is installed: a process that begins without it does the same,
// only sooner or later.
type memory struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*record
}

// record is what is remembered of one plan. Only the worker that has the plan
// touches it, but for woken.
type record struct {
	uid types.UID
	// wrote says that this process has written a phase; phase and version are that
	// phase and what the plan's resource version became.
	wrote   bool
	phase   operatorsv1alpha1.InstallPlanPhase
	version string
	// seen is the phase in which the plan was found last.
	seen operatorsv1alpha1.InstallPlanPhase
	// foreign is a phase that somebody else wrote, found at a time.
	foreign      operatorsv1alpha1.InstallPlanPhase
	foreignSince time.Time
	// ready is since when the next phase could be written, but for the Subscriptions
	// that do not show the present one.
	ready time.Time
	// outcome is that of a pass which waits for the same.
	outcome *outcome
	// failures counts the tries that failed one after another; the next is due then.
	failures   int
	due        time.Time
	generation int64
	// windows holds the steps, by index, that have had their retry window since the plan
	// came to its phase.
	windows map[int]bool
	// rests counts the pauses of a plan that was given up, over all times that it was
	// tried again and got no further than furthest, a step of the plan.
	rests, furthest int
	// roused is what woken was when the present pass began.
	roused bool
	// warned holds what was said of steps, by their index.
	warned map[int]string
	// woken says that something happened that may be what the plan waits for.
	woken atomic.Bool
}

// outcome is the status that a plan is to have after a pass, and the one that the
// pass began with.
type outcome struct {
	before, after operatorsv1alpha1.InstallPlanStatus
	// cause is the annotation with the cause after the pass.
	cause      string
	generation int64
}

// of gives the record of a plan. A plan recreated under its old name has a new one.
func (m *memory) of(key types.NamespacedName, p *operatorsv1alpha1.InstallPlan) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = map[types.NamespacedName]*record{}
	}
	rec := m.records[key]
	if rec == nil || rec.uid != p.UID {
		rec = &record{uid: p.UID, generation: p.Generation, warned: map[int]string{}}
		m.records[key] = rec
	}
	rec.roused = rec.woken.Swap(false)
	if rec.generation != p.Generation {
		rec.generation, rec.rests = p.Generation, 0
		rec.failures, rec.due = 0, time.Time{}
	}
	if rec.roused {
		rec.failures, rec.due = 0, time.Time{}
	}
	return rec
}

// forget drops the record of a plan that is gone.
func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
}

// wake lets the next pass over a plan begin at once.
func (m *memory) wake(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rec := m.records[key]; rec != nil {
		rec.woken.Store(true)
	}
}

// outdated says whether a plan was read from a cache that does not yet have what
// this process wrote last.
func (r *record) outdated(p *operatorsv1alpha1.InstallPlan) bool {
	if r.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(p.ResourceVersion, r.version)
	return err == nil && order < 0
}

// stands says how long a phase that somebody else wrote has yet to be left
// standing, so that those who watch see it.
func (r *record) stands(phase operatorsv1alpha1.InstallPlanPhase, now time.Time, dwell time.Duration) time.Duration {
	if phase != r.seen {
		// Whoever wrote it, the Subscriptions have the whole time to tell of it.
		r.seen, r.ready = phase, time.Time{}
	}
	if !r.wrote || phase == r.phase {
		r.foreign, r.foreignSince = "", time.Time{}
		return 0
	}
	if r.foreignSince.IsZero() || r.foreign != phase {
		r.foreign, r.foreignSince = phase, now
		r.failures, r.rests, r.due, r.ready, r.outcome = 0, 0, time.Time{}, time.Time{}, nil
	}
	return max(0, r.foreignSince.Add(dwell).Sub(now))
}

// written records that this process wrote the plan's status.
func (r *record) written(p *operatorsv1alpha1.InstallPlan) {
	if !r.wrote || r.phase != p.Status.Phase {
		r.failures, r.due, r.windows = 0, time.Time{}, nil
	}
	r.wrote, r.phase, r.version = true, p.Status.Phase, p.ResourceVersion
	r.foreign, r.foreignSince = "", time.Time{}
	r.ready, r.outcome = time.Time{}, nil
}

// keep remembers the outcome of a pass.
func (r *record) keep(before, after *operatorsv1alpha1.InstallPlan) {
	r.outcome = &outcome{
		before: *before.Status.DeepCopy(), after: *after.Status.DeepCopy(),
		cause: after.Annotations[api.AnnotationCause], generation: before.Generation,
	}
}

// recall gives a plan the outcome of an earlier pass; false when there is none, or
// the plan has changed since.
func (r *record) recall(p *operatorsv1alpha1.InstallPlan) bool {
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
