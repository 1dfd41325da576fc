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
	// maxSightings is how many stages of one plan are remembered that its
	// Subscriptions have not told yet.
	maxSightings = 1024
	// keepGone is how long a plan is remembered that was deleted, so that what it
	// went through at last can still be told.
	keepGone = 10 * time.Minute
)

// sighting is an InstallPlan at the moment when it came to a stage.
type sighting struct {
	version uint64 // its resource version
	at      time.Time
	// plan is without its steps, which tell nothing of the stage.
	plan *operatorsv1alpha1.InstallPlan
}

// journal remembers, in the order of their versions, the stages that InstallPlans
// went through: a plan may be far ahead of what its Subscriptions tell. Standbys keep
// it too, so that whoever leads next can go on telling. Its methods may be called from
// any goroutine.
type journal struct {
	mu    sync.Mutex
	plans map[types.UID]*chapter
	// follows is, by the UID of the Subscription, the plan that it tells of.
	follows map[types.UID]types.UID
	// ordered says that versions of a plan come in their order from now on. Before,
	// what is watched comes beside what is looked up, and every version is kept.
	ordered bool
}

// chapter is what is known of one plan.
type chapter struct {
	// sightings are the stages that were not told by everybody yet, and the newest
	// one. No two neighbours are at the same stage, once versions come in order.
	sightings []sighting
	// latest is the newest version.
	latest sighting
	// gone is when the plan was seen to be deleted.
	gone time.Time
	// told is, by the UID of the Subscription, the version that its status tells.
	told map[types.UID]uint64
}

// audience are the Subscriptions that a plan is told by: its owners, those that it
// says it serves though somebody has stripped the reference, and those that refer to
// it because it made them.
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

// withoutSteps is a plan as the journal keeps it: with what a Subscription tells of it,
// and no more.
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

// see notes a version of a plan, in whatever order versions come.
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

// order says that versions come in their order from now on.
func (j *journal) order() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ordered = true
	for _, c := range j.plans {
		c.sightings = slices.CompactFunc(c.sightings, sameStage)
	}
}

// sameStage says whether a plan did not move on between two sightings.
func sameStage(a, b sighting) bool { return history.StageOf(a.plan) == history.StageOf(b.plan) }

// end notes that a plan was deleted, and forgets those that were long ago.
func (j *journal) end(p *operatorsv1alpha1.InstallPlan, now time.Time) {
	if _, latest := j.since(p.UID, 0); latest == nil || history.StageOf(latest.plan) != history.StageOf(p) {
		// The version of a deletion is none that the plan had.
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

// tell notes which version of a plan the status of a Subscription tells.
func (j *journal) tell(sub *operatorsv1alpha1.Subscription) {
	ref := sub.Status.InstallPlanRef
	if ref == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if before := j.follows[sub.UID]; before != ref.UID {
		// It waits for nothing more of the plan before.
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

// since gives the stages of a plan after a version, and the newest version of it;
// latest is nil when nothing is known of the plan.
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

// prune forgets the stages that every Subscription which the plan serves has told,
// except for the newest.
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
