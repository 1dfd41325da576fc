package subscription

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/history"
)

// Bounds of the journal.
const (
	// maxSightings bounds the stages of one plan that the journal holds for its Subscriptions.
	maxSightings = 1024
	// keepGone is how long the journal holds a deleted plan, so that its last stages can still be
	// shown.
	keepGone = 10 * time.Minute
)

// sighting is an InstallPlan at the moment when it entered a stage.
type sighting struct {
	version uint64 // its resource version
	at      time.Time
	// plan lacks its steps, which the stage does not depend on.
	plan *operatorsv1alpha1.InstallPlan
}

// journal holds the stages that InstallPlans went through, in the order of their versions. A plan
// may be far ahead of what its Subscriptions show. Standbys hold it too, so that the next leader
// can continue. It is safe for concurrent use.
type journal struct {
	mu    sync.Mutex
	plans map[types.UID]*chapter
	// follows holds the plan that each Subscription shows, by the UID of the Subscription.
	follows map[types.UID]types.UID
	// ordered reports that the versions of a plan arrive in order from now on. Before, watched
	// events and looked-up events arrive side by side, and the journal holds every version.
	ordered bool
}

// chapter holds the stages of one plan.
type chapter struct {
	// sightings are the stages that some Subscriptions do not show yet, and the newest one. Once
	// versions arrive in order, no two neighbours have the same stage.
	sightings []sighting
	// latest is the newest version.
	latest sighting
	// gone is when the deletion of the plan was seen.
	gone time.Time
	// told holds the version that the status of each Subscription shows, by the UID of the
	// Subscription.
	told map[types.UID]uint64
}

// audience returns the Subscriptions that show a plan: its owners, those in its annotations, even
// if the reference was removed, and those whose status refers to it.
func (c *chapter) audience() []types.UID {
	var list []types.UID
	for _, ref := range c.latest.plan.OwnerReferences {
		if ref.Kind == operatorsv1alpha1.SubscriptionKind {
			list = append(list, ref.UID)
		}
	}
	for key := range c.latest.plan.Annotations {
		if uid, serves := strings.CutPrefix(key, api.PrefixServes); serves {
			list = append(list, types.UID(uid))
		}
	}
	return slices.AppendSeq(list, maps.Keys(c.told))
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

// see records a version of a plan. Versions may arrive in any order.
func (j *journal) see(p *operatorsv1alpha1.InstallPlan, now time.Time) {
	s := sighting{version: history.Version(p.ResourceVersion), at: now, plan: withoutSteps(p)}
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.chapter(p.UID)
	if s.version > c.latest.version {
		c.latest = s
	}
	i, known := slices.BinarySearchFunc(c.sightings, s.version, func(s sighting, v uint64) int {
		switch {
		case s.version < v:
			return -1
		case s.version > v:
			return 1
		default:
			return 0
		}
	})
	if known || (j.ordered && i > 0 && sameStage(c.sightings[i-1], s)) {
		return
	}
	c.sightings = slices.Insert(c.sightings, i, s)
	c.prune()
}

// order records that versions arrive in order from now on.
func (j *journal) order() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ordered = true
	for _, c := range j.plans {
		c.sightings = slices.CompactFunc(c.sightings, sameStage)
	}
}

// sameStage reports whether a plan had the same stage at two sightings.
func sameStage(a, b sighting) bool { return history.StageOf(a.plan) == history.StageOf(b.plan) }

// end records the deletion of a plan, and drops plans that were deleted long ago.
func (j *journal) end(p *operatorsv1alpha1.InstallPlan, now time.Time) {
	if _, latest := j.since(p.UID, 0); latest == nil || history.StageOf(latest.plan) != history.StageOf(p) {
		// The resource version of a deletion is not a version of the plan.
		j.see(p, now)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.chapter(p.UID).gone = now
	for uid, c := range j.plans {
		if !c.gone.IsZero() && now.Sub(c.gone) > keepGone {
			delete(j.plans, uid)
		}
	}
	maps.DeleteFunc(j.follows, func(_, uid types.UID) bool { return j.plans[uid] == nil })
}

// tell records which version of a plan the status of a Subscription shows.
func (j *journal) tell(sub *operatorsv1alpha1.Subscription) {
	ref := sub.Status.InstallPlanRef
	if ref == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if before := j.follows[sub.UID]; before != ref.UID {
		// It needs nothing more of the plan before.
		if c := j.plans[before]; c != nil {
			delete(c.told, sub.UID)
		}
		if j.follows == nil {
			j.follows = map[types.UID]types.UID{}
		}
		j.follows[sub.UID] = ref.UID
	}
	c := j.plans[ref.UID]
	if c == nil {
		return
	}
	if c.told == nil {
		c.told = map[types.UID]uint64{}
	}
	c.told[sub.UID] = history.Version(ref.ResourceVersion)
	c.prune()
}

// since returns the stages of a plan after a version, and its newest version; latest is nil for an
// unknown plan.
func (j *journal) since(of types.UID, version uint64) (stages []sighting, latest *sighting) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.plans[of]
	if c == nil {
		return nil, nil
	}
	for _, s := range c.sightings {
		if s.version > version {
			stages = append(stages, s)
		}
	}
	newest := c.latest
	return stages, &newest
}

func (j *journal) chapter(of types.UID) *chapter {
	if j.plans == nil {
		j.plans = map[types.UID]*chapter{}
	}
	if j.plans[of] == nil {
		j.plans[of] = &chapter{}
	}
	return j.plans[of]
}

// prune drops the stages that every Subscription of the plan shows, except for the newest.
func (c *chapter) prune() {
	told := c.latest.version
	for _, uid := range c.audience() {
		told = min(told, c.told[uid])
	}
	keep := 0
	for keep < len(c.sightings)-1 && c.sightings[keep+1].version <= told {
		keep++
	}
	keep = max(keep, len(c.sightings)-maxSightings)
	c.sightings = slices.Delete(c.sightings, 0, keep)
}
