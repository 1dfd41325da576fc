package subscription

import (
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// update holds what is to be written on a Subscription, in order.
type update struct {
	log transitionlog.Log
	// added holds the transitions that the log did not have.
	added []transitionlog.Transition
	// statuses are to be written one after the other.
	statuses []statusUpdate
	// more reports that further transitions follow these.
	more bool
}

// statusUpdate is a status of a Subscription.
type statusUpdate struct {
	status operatorsv1alpha1.SubscriptionStatus
	// observed is when the transition that it shows was seen; zero for no transition.
	observed time.Time
}

// maxBatch is the number of transitions that are written together, within the size of the log.
const maxBatch = transitionlog.MaxTransitions / 2

// updateFor returns the statuses and log entries of the Subscription of a decision, stage by stage.
func updateFor(o *namespaceState, d *decision, entries transitionlog.Log, stages []pendingStage, now metav1.Time) update {
	u := update{log: entries}
	sub := d.subscription.DeepCopy()
	at := d.withSubscription(sub)
	for i, s := range stages {
		if len(u.added) == maxBatch {
			u.more = true
			return u
		}
		status := statusOf(o, at, s.plan, now)
		if s.missing {
			status = missingPlanStatus(&sub.Status, now)
		}
		t, changed := transition(&sub.Status, &status, s, now)
		last := i == len(stages)-1
		if changed && !s.recorded && !endsWith(u.log, t) {
			u.add(t, last)
		}
		if !changed && !last {
			continue
		}
		next := statusUpdate{status: status}
		if changed {
			next.observed = s.at
		}
		u.statuses = append(u.statuses, next)
		sub.Status = status
	}
	return u
}

// add adds a transition to the log. The last transition is marked as seen live.
func (u *update) add(t transitionlog.Transition, last bool) {
	t.Observed = transitionlog.Afterwards
	if last {
		t.Observed = transitionlog.Live
	}
	if newest := u.log.Last(); newest != nil && t.Time.Before(&newest.Time) {
		// Clocks differ, and the API server truncates times.
		t.Time = newest.Time
	}
	u.log = u.log.Append(t)
	u.added = append(u.added, *u.log.Last())
}

// missingPlanStatus returns the status of a Subscription whose plan is gone.
func missingPlanStatus(before *operatorsv1alpha1.SubscriptionStatus, now metav1.Time) operatorsv1alpha1.SubscriptionStatus {
	status := *before.DeepCopy()
	if status.InstallPlanRef == nil {
		return status
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c operatorsv1alpha1.SubscriptionCondition) bool {
		return c.Type == operatorsv1alpha1.SubscriptionInstallPlanPending || c.Type == operatorsv1alpha1.SubscriptionInstallPlanFailed
	})
	status.Conditions = mergeConditions(nil, append(status.Conditions, missingPlan()), now)
	return status
}

// transition returns the transition that a Subscription shows when its status changes from before
// to after. The second result is false for no transition.
func transition(before, after *operatorsv1alpha1.SubscriptionStatus, s pendingStage, now metav1.Time) (transitionlog.Transition, bool) {
	stage, refers := transitionlog.Shown(after)
	if !refers {
		return transitionlog.Transition{}, false
	}
	ref := after.InstallPlanRef
	if was, referred := transitionlog.Shown(before); referred && before.InstallPlanRef.UID == ref.UID && was == stage {
		return transitionlog.Transition{}, false
	}
	t := transitionlog.Transition{Plan: ref.Name, UID: ref.UID, Version: ref.ResourceVersion, Phase: stage.Phase, Reason: stage.Reason, Time: now}
	if s.plan != nil && stage != transitionlog.Missing() {
		t.Version, t.Time = s.plan.ResourceVersion, metav1.NewTime(s.at).Rfc3339Copy()
	}
	return t, true
}

// endsWith reports whether a transition is the last entry of a log.
func endsWith(entries transitionlog.Log, t transitionlog.Transition) bool {
	last := entries.Last()
	return last != nil && last.UID == t.UID && last.Stage() == t.Stage()
}
