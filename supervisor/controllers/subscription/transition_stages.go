package subscription

import (
	"slices"
	"strconv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// pendingStage is the state of a plan at one moment that a Subscription has to show.
type pendingStage struct {
	// plan is the plan at that time; nil for none.
	plan *operatorsv1alpha1.InstallPlan
	at   time.Time
	// recorded reports that the log has the transition already: its writer died before the status
	// showed it.
	recorded bool
	// missing reports that the plan in the status was gone.
	missing bool
}

// sameAs reports whether two stages show the same plan at the same stage.
func (s pendingStage) sameAs(other pendingStage) bool {
	return s.plan != nil && s.plan.UID == other.plan.UID && transitionlog.StageOf(s.plan) == transitionlog.StageOf(other.plan)
}

// stageLookup returns the stages of a plan after a version, and its newest known version; nil when
// none is known.
type stageLookup func(plan types.UID, version uint64) ([]observedStage, *observedStage)

// pendingStages returns what a Subscription has yet to show, in order. The last stage is the current
// state of plan p; nil for no plan. The second result is false when nothing is known of p yet.
func pendingStages(
	sub *operatorsv1alpha1.Subscription, entries transitionlog.Log, find stageLookup, p *operatorsv1alpha1.InstallPlan, at time.Time,
) ([]pendingStage, bool) {
	shownEntries, ahead := splitLog(&sub.Status, entries, p)
	b := &backlog{sub: sub, find: find, reached: map[types.UID]uint64{}}
	for _, t := range shownEntries {
		b.reach(t.UID, transitionlog.Version(t.Version))
	}
	ref := sub.Status.InstallPlanRef
	if ref != nil {
		stages, _ := find(ref.UID, transitionlog.Version(ref.ResourceVersion))
		b.reach(ref.UID, shownVersion(&sub.Status, entries, stages))
	}
	b.addRecorded(ahead)
	shown, _ := transitionlog.Shown(&sub.Status)
	if ref != nil && (p == nil || ref.UID != p.UID) && shown != transitionlog.Missing() {
		b.addStages(ref.UID)
	}
	if p == nil {
		return append(b.stages, pendingStage{at: at}), true
	}
	latest := b.addStages(p.UID)
	if latest == nil {
		return nil, false
	}
	now := pendingStage{plan: latest.plan, at: latest.at}
	if n := len(b.stages); n > 0 && !b.stages[n-1].recorded && b.stages[n-1].sameAs(now) {
		// The plan entered this stage earlier; at most its message differs.
		now.at, b.stages = b.stages[n-1].at, b.stages[:n-1]
	}
	return append(b.stages, now), true
}

// backlog collects the stages that follow the status of a Subscription and its log.
type backlog struct {
	sub     *operatorsv1alpha1.Subscription
	find    stageLookup
	reached map[types.UID]uint64 // the version up to which a plan is shown
	stages  []pendingStage
}

func (b *backlog) reach(plan types.UID, version uint64) {
	b.reached[plan] = max(b.reached[plan], version)
}

// addRecorded adds the transitions that the log has ahead of the status.
func (b *backlog) addRecorded(ahead transitionlog.Log) {
	for _, t := range ahead {
		s := pendingStage{at: t.Time.Time, recorded: true, missing: t.Phase == transitionlog.PhaseMissing}
		if !s.missing {
			s.plan = recordedPlan(t, b.sub.Namespace, b.find)
		}
		b.stages = append(b.stages, s)
		b.reach(t.UID, transitionlog.Version(t.Version))
	}
}

// addStages adds the stages of a plan that the Subscription does not show yet, and returns the newest
// version of the plan. Stages before the plan served the Subscription do not count.
func (b *backlog) addStages(plan types.UID) *observedStage {
	version, known := b.reached[plan]
	stages, latest := b.find(plan, version)
	if !known {
		stages = withFirstStage(stages, b.sub)
	}
	for _, s := range stages {
		if known || serves(s.plan, b.sub) {
			b.stages = append(b.stages, pendingStage{plan: s.plan, at: s.at})
		}
	}
	return latest
}

// withFirstStage adds the first stage of a plan if its event has expired: a plan is created without a
// status. A plan that is older than the Subscription began without the Subscription.
func withFirstStage(stages []observedStage, sub *operatorsv1alpha1.Subscription) []observedStage {
	if len(stages) == 0 {
		return nil
	}
	oldest := stages[0]
	created := oldest.plan.CreationTimestamp
	known := transitionlog.StageOf(oldest.plan) == transitionlog.StageOf(&operatorsv1alpha1.InstallPlan{})
	if known || !serves(oldest.plan, sub) || created.Before(&sub.CreationTimestamp) {
		return stages
	}
	first := observedStage{version: oldest.version - 1, at: created.Time, plan: oldest.plan.DeepCopy()}
	first.plan.Status = operatorsv1alpha1.InstallPlanStatus{}
	first.plan.ResourceVersion = strconv.FormatUint(first.version, 10)
	return append([]observedStage{first}, stages...)
}

// shownVersion returns the version up to which a status shows its plan, from the stages of the plan after the version
// in its reference.
//
// OLM does not update the reference when the plan enters another stage, and writes no log. The status then shows
// the plan up to the first version at the stage of the status.
func shownVersion(status *operatorsv1alpha1.SubscriptionStatus, entries transitionlog.Log, stages []observedStage) uint64 {
	ref := status.InstallPlanRef
	if entries.LastOf(ref.UID) == nil {
		for _, s := range stages {
			if transitionlog.Shows(status, s.plan) {
				return s.version
			}
		}
	}
	return transitionlog.Version(ref.ResourceVersion)
}

// splitLog splits a log into the transitions that the status of a Subscription shows and those ahead
// of it.
func splitLog(
	status *operatorsv1alpha1.SubscriptionStatus, entries transitionlog.Log, p *operatorsv1alpha1.InstallPlan,
) (shownEntries, ahead transitionlog.Log) {
	ref := status.InstallPlanRef
	if ref == nil {
		// Either only the log was written so far, or a status that showed everything was lost.
		others := slices.ContainsFunc(entries, func(t transitionlog.Transition) bool { return p == nil || t.UID != p.UID })
		if others {
			return entries, nil
		}
		return nil, entries
	}
	shown, _ := transitionlog.Shown(status)
	first := len(entries)
	for i, t := range slices.Backward(entries) {
		reached := t.UID == ref.UID && transitionlog.Version(t.Version) <= transitionlog.Version(ref.ResourceVersion)
		if reached && (t.Phase != transitionlog.PhaseMissing || shown == transitionlog.Missing()) {
			return entries[:i+1], entries[i+1:]
		}
		if t.UID == ref.UID {
			first = i
		}
	}
	return entries[:first], entries[first:]
}

// recordedPlan returns the plan of a transition as it was then, as far as that is known.
func recordedPlan(t transitionlog.Transition, namespace string, find stageLookup) *operatorsv1alpha1.InstallPlan {
	version := transitionlog.Version(t.Version)
	stages, latest := find(t.UID, max(version, 1)-1)
	if len(stages) > 0 && stages[0].version == version {
		return stages[0].plan
	}
	p := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: t.Plan, UID: t.UID}}
	if latest != nil {
		p = latest.plan.DeepCopy()
	}
	p.ResourceVersion = t.Version
	p.Status.Phase, p.Status.Message, p.Status.Conditions = operatorsv1alpha1.InstallPlanPhase(t.Phase), "", nil
	if t.Phase == string(operatorsv1alpha1.InstallPlanPhaseFailed) && t.Reason != operatorsv1alpha1.InstallPlanFailed {
		p.Status.SetCondition(operatorsv1alpha1.InstallPlanCondition{
			Type: operatorsv1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse,
			Reason: operatorsv1alpha1.InstallPlanConditionReason(t.Reason),
		})
	}
	return p
}

// unrecordedPhases returns, by UID, the phases of the plans that Subscriptions refer to, as far as
// transition logs may lack them.
func unrecordedPhases(subscriptions []*operatorsv1alpha1.Subscription, find stageLookup) map[types.UID][]operatorsv1alpha1.InstallPlanPhase {
	phases := map[types.UID][]operatorsv1alpha1.InstallPlanPhase{}
	for _, sub := range subscriptions {
		ref := sub.Status.InstallPlanRef
		if ref == nil || phases[ref.UID] != nil {
			continue
		}
		stages, _ := find(ref.UID, 0)
		for _, s := range stages {
			phases[ref.UID] = append(phases[ref.UID], s.plan.Status.Phase)
		}
	}
	return phases
}
