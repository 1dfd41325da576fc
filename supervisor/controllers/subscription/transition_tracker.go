package subscription

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// Bounds of the tracker.
const (
	// maxStages bounds the stages of one plan that the tracker holds for its Subscriptions.
	maxStages = 1024
	// deletedPlanTTL is how long the tracker holds a deleted plan, so that its last stages can still
	// be shown.
	deletedPlanTTL = 10 * time.Minute
)

// observedStage is an InstallPlan at the moment when it entered a stage.
type observedStage struct {
	version uint64 // its resource version
	at      time.Time
	// plan lacks its steps, which the stage does not depend on.
	plan *operatorsv1alpha1.InstallPlan
}

// tracker holds the stages that InstallPlans went through, in the order of their versions. A plan
// may be far ahead of what its Subscriptions show. Standbys hold it too, so that the next leader
// can continue. It is safe for concurrent use.
type tracker struct {
	mu    sync.Mutex
	plans map[types.UID]*trackedPlan
	// shownPlans holds the plan that each Subscription shows, by the UID of the Subscription.
	shownPlans map[types.UID]types.UID
	// ordered reports that the versions of a plan arrive in order from now on. Before, watched
	// events and backfilled events arrive side by side, and the tracker holds every version.
	ordered bool
}

// trackedPlan holds the stages of one plan.
type trackedPlan struct {
	// stages are the stages that some Subscriptions do not show yet, and the newest one. Once
	// versions arrive in order, no two neighbours have the same stage.
	stages []observedStage
	// latest is the newest version.
	latest observedStage
	// deletedAt is when the deletion of the plan was seen.
	deletedAt time.Time
	// shown holds the version that the status of each Subscription shows, by the UID of the
	// Subscription.
	shown map[types.UID]uint64
}

// subscriptions returns the Subscriptions that show a plan: its owners, those in its annotations,
// even if the reference was removed, and those whose status refers to it.
func (p *trackedPlan) subscriptions() []types.UID {
	var list []types.UID
	for _, ref := range p.latest.plan.OwnerReferences {
		if ref.Kind == operatorsv1alpha1.SubscriptionKind {
			list = append(list, ref.UID)
		}
	}
	for key := range p.latest.plan.Annotations {
		if uid, serves := strings.CutPrefix(key, api.PrefixServes); serves {
			list = append(list, types.UID(uid))
		}
	}
	return slices.AppendSeq(list, maps.Keys(p.shown))
}

// prune drops the stages that every Subscription of the plan shows, except for the newest.
func (p *trackedPlan) prune() {
	shown := p.latest.version
	for _, uid := range p.subscriptions() {
		shown = min(shown, p.shown[uid])
	}
	first := 0
	for first < len(p.stages)-1 && p.stages[first+1].version <= shown {
		first++
	}
	first = max(first, len(p.stages)-maxStages)
	p.stages = slices.Delete(p.stages, 0, first)
}

// withoutSteps returns a copy of a plan with only the fields that Subscriptions show.
func withoutSteps(p *operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.InstallPlan {
	light := *p
	light.ManagedFields, light.Status.Plan, light.Annotations = nil, nil, map[string]string{}
	for key, value := range p.Annotations {
		if strings.HasPrefix(key, api.PrefixServes) || key == api.AnnotationVersions {
			light.Annotations[key] = value
		}
	}
	return light.DeepCopy()
}

// add records a version of a plan. Versions may arrive in any order.
func (t *tracker) add(p *operatorsv1alpha1.InstallPlan, now time.Time) {
	s := observedStage{version: transitionlog.Version(p.ResourceVersion), at: now, plan: withoutSteps(p)}
	t.mu.Lock()
	defer t.mu.Unlock()
	tracked := t.track(p.UID)
	if s.version > tracked.latest.version {
		tracked.latest = s
	}
	i, known := slices.BinarySearchFunc(tracked.stages, s.version, func(s observedStage, version uint64) int {
		return cmp.Compare(s.version, version)
	})
	if known || (t.ordered && i > 0 && sameStage(tracked.stages[i-1], s)) {
		return
	}
	tracked.stages = slices.Insert(tracked.stages, i, s)
	tracked.prune()
}

// setOrdered records that versions arrive in order from now on.
func (t *tracker) setOrdered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ordered = true
	for _, p := range t.plans {
		p.stages = slices.CompactFunc(p.stages, sameStage)
	}
}

// sameStage reports whether two versions of a plan have the same stage.
func sameStage(a, b observedStage) bool {
	return transitionlog.StageOf(a.plan) == transitionlog.StageOf(b.plan)
}

// markDeleted records the deletion of a plan, and drops plans that were deleted long ago.
func (t *tracker) markDeleted(p *operatorsv1alpha1.InstallPlan, now time.Time) {
	if _, latest := t.since(p.UID, 0); latest == nil || transitionlog.StageOf(latest.plan) != transitionlog.StageOf(p) {
		// The resource version of a deletion is not a version of the plan.
		t.add(p, now)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.track(p.UID).deletedAt = now
	maps.DeleteFunc(t.plans, func(_ types.UID, p *trackedPlan) bool {
		return !p.deletedAt.IsZero() && now.Sub(p.deletedAt) > deletedPlanTTL
	})
	maps.DeleteFunc(t.shownPlans, func(_, uid types.UID) bool { return t.plans[uid] == nil })
}

// acknowledge records which version of a plan the status of a Subscription shows.
func (t *tracker) acknowledge(sub *operatorsv1alpha1.Subscription) {
	ref := sub.Status.InstallPlanRef
	if ref == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if before := t.shownPlans[sub.UID]; before != ref.UID {
		// The Subscription needs no more stages of the plan before.
		if p := t.plans[before]; p != nil {
			delete(p.shown, sub.UID)
		}
		if t.shownPlans == nil {
			t.shownPlans = map[types.UID]types.UID{}
		}
		t.shownPlans[sub.UID] = ref.UID
	}
	p := t.plans[ref.UID]
	if p == nil {
		return
	}
	if p.shown == nil {
		p.shown = map[types.UID]uint64{}
	}
	p.shown[sub.UID] = transitionlog.Version(ref.ResourceVersion)
	p.prune()
}

// since returns the stages of a plan after a version, and its newest version; latest is nil for an
// unknown plan.
func (t *tracker) since(plan types.UID, version uint64) (stages []observedStage, latest *observedStage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.plans[plan]
	if p == nil {
		return nil, nil
	}
	for _, s := range p.stages {
		if s.version > version {
			stages = append(stages, s)
		}
	}
	newest := p.latest
	return stages, &newest
}

// track returns the record of a plan, and begins one for an unknown plan.
func (t *tracker) track(plan types.UID) *trackedPlan {
	if t.plans == nil {
		t.plans = map[types.UID]*trackedPlan{}
	}
	if t.plans[plan] == nil {
		t.plans[plan] = &trackedPlan{}
	}
	return t.plans[plan]
}
