package subscription

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/history"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// frame is the state of a plan at one moment that a Subscription has to show.
type frame struct {
	// plan is the plan at that time; nil for none.
	plan *operatorsv1alpha1.InstallPlan
	at   time.Time
	// recorded reports that the log has the transition already: its writer died before the status
	// showed it.
	recorded bool
	// missing reports that the plan in the status was gone.
	missing bool
}

// chronicle holds everything that is to be written on a Subscription, in order.
type chronicle struct {
	ledger history.Log
	// statuses are to be written one after the other. since holds when the transition of each was
	// seen; zero for no transition.
	statuses []operatorsv1alpha1.SubscriptionStatus
	since    []time.Time
	// fresh holds the transitions that the log did not have.
	fresh []history.Transition
	// more reports that further transitions follow these.
	more bool
}

// batch is the number of transitions that are written together, within the size of the log.
const batch = history.MaxTransitions / 2

// pages returns the stages of a plan after a version, and its newest known version; nil when none
// is known.
type pages func(plan types.UID, version uint64) ([]observedStage, *observedStage)

// frames returns what a Subscription has yet to show, in order. The last frame is the current state
// of plan p; nil for no plan. The second result is false when nothing is known of p yet.
func frames(sub *operatorsv1alpha1.Subscription, ledger history.Log, find pages, p *operatorsv1alpha1.InstallPlan, at time.Time) ([]frame, bool) {
	told, ahead := divide(&sub.Status, ledger, p)
	s := &sequel{sub: sub, find: find, reached: map[types.UID]uint64{}}
	for _, t := range told {
		s.reach(t.UID, t.Version)
	}
	ref := sub.Status.InstallPlanRef
	if ref != nil {
		s.reach(ref.UID, ref.ResourceVersion)
	}
	s.recall(ahead)
	shown, _ := history.Shown(&sub.Status)
	if ref != nil && (p == nil || ref.UID != p.UID) && shown != history.Missing() {
		s.untold(ref.UID)
	}
	if p == nil {
		return append(s.frames, frame{at: at}), true
	}
	latest := s.untold(p.UID)
	if latest == nil {
		return nil, false
	}
	now := frame{plan: latest.plan, at: latest.at}
	if n := len(s.frames); n > 0 && !s.frames[n-1].recorded && s.frames[n-1].shares(now) {
		// The plan entered this stage earlier; at most its message differs.
		now.at, s.frames = s.frames[n-1].at, s.frames[:n-1]
	}
	return append(s.frames, now), true
}

// shares reports whether two frames show the same plan at the same stage.
func (f frame) shares(other frame) bool {
	return f.plan != nil && f.plan.UID == other.plan.UID && history.StageOf(f.plan) == history.StageOf(other.plan)
}

// sequel collects the frames that follow the status of a Subscription and its log.
type sequel struct {
	sub     *operatorsv1alpha1.Subscription
	find    pages
	reached map[types.UID]uint64 // the version up to which a plan is shown
	frames  []frame
}

// recall adds the transitions that the log has ahead of the status.
func (s *sequel) recall(ahead history.Log) {
	for _, t := range ahead {
		f := frame{at: t.Time.Time, recorded: true, missing: t.Phase == history.PhaseMissing}
		if !f.missing {
			f.plan = recall(t, s.sub.Namespace, s.find)
		}
		s.frames = append(s.frames, f)
		s.reach(t.UID, t.Version)
	}
}

func (s *sequel) reach(of types.UID, version string) {
	s.reached[of] = max(s.reached[of], history.Version(version))
}

// untold adds the stages of a plan that the Subscription does not show yet, and returns the newest
// version of the plan. Stages before the plan served the Subscription do not count.
func (s *sequel) untold(of types.UID) *observedStage {
	version, known := s.reached[of]
	stages, latest := s.find(of, version)
	if !known {
		stages = fromTheBeginning(stages, s.sub)
	}
	for _, stage := range stages {
		if known || serves(stage.plan, s.sub) {
			s.frames = append(s.frames, frame{plan: stage.plan, at: stage.at})
		}
	}
	return latest
}

// fromTheBeginning adds the first stage of a plan where the API server has forgotten it: a plan is
// created without a status. A plan that is older than the Subscription began without the
// Subscription.
func fromTheBeginning(stages []observedStage, sub *operatorsv1alpha1.Subscription) []observedStage {
	if len(stages) == 0 {
		return nil
	}
	first := stages[0]
	born := first.plan.CreationTimestamp
	if history.StageOf(first.plan) == history.StageOf(&operatorsv1alpha1.InstallPlan{}) || !serves(first.plan, sub) || born.Before(&sub.CreationTimestamp) {
		return stages
	}
	begun := observedStage{version: first.version - 1, at: born.Time, plan: first.plan.DeepCopy()}
	begun.plan.Status = operatorsv1alpha1.InstallPlanStatus{}
	begun.plan.ResourceVersion = strconv.FormatUint(begun.version, 10)
	return append([]observedStage{begun}, stages...)
}

// divide splits a log into the transitions that the status of a Subscription shows and those ahead
// of it.
func divide(status *operatorsv1alpha1.SubscriptionStatus, ledger history.Log, p *operatorsv1alpha1.InstallPlan) (told, ahead history.Log) {
	ref := status.InstallPlanRef
	if ref == nil {
		// Either only the log was written so far, or a status that showed everything was lost.
		others := slices.ContainsFunc(ledger, func(t history.Transition) bool { return p == nil || t.UID != p.UID })
		if others {
			return ledger, nil
		}
		return nil, ledger
	}
	shown, _ := history.Shown(status)
	first := len(ledger)
	for i, t := range slices.Backward(ledger) {
		reached := t.UID == ref.UID && history.Version(t.Version) <= history.Version(ref.ResourceVersion)
		if reached && (t.Phase != history.PhaseMissing || shown == history.Missing()) {
			return ledger[:i+1], ledger[i+1:]
		}
		if t.UID == ref.UID {
			first = i
		}
	}
	return ledger[:first], ledger[first:]
}

// recall returns the plan of a transition as it was then, as far as that is known.
func recall(t history.Transition, namespace string, find pages) *operatorsv1alpha1.InstallPlan {
	version := history.Version(t.Version)
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

// serves reports whether a plan serves a Subscription, by its owner references or its annotations.
func serves(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	_, noted := p.Annotations[api.PrefixServes+string(sub.UID)]
	return noted || isOwner(p, sub)
}

// chronicle returns the statuses and log entries of the Subscription of a decision, frame by frame.
func (o *observation) chronicle(d *decision, ledger history.Log, list []frame, now metav1.Time) chronicle {
	c := chronicle{ledger: ledger}
	sub := d.subscription.DeepCopy()
	at := *d
	at.subscription = sub
	for i, f := range list {
		if len(c.fresh) == batch {
			c.more = true
			return c
		}
		status := derive(o, &at, f.plan, now)
		if f.missing {
			status = missed(&sub.Status, now)
		}
		t, moved := transition(&sub.Status, &status, f, now)
		last := i == len(list)-1
		if moved && !f.recorded && !written(c.ledger, t) {
			c.enter(t, last)
		}
		if !moved && !last {
			continue
		}
		seen := f.at
		if !moved {
			seen = time.Time{}
		}
		c.statuses, c.since = append(c.statuses, status), append(c.since, seen)
		sub.Status = status
	}
	return c
}

// enter adds a transition to the log. The last transition is marked as seen live.
func (c *chronicle) enter(t history.Transition, last bool) {
	t.Observed = history.Afterwards
	if last {
		t.Observed = history.Live
	}
	if newest := c.ledger.Last(); newest != nil && t.Time.Before(&newest.Time) {
		// Clocks differ, and the API server truncates times.
		t.Time = newest.Time
	}
	c.ledger = c.ledger.Append(t)
	c.fresh = append(c.fresh, *c.ledger.Last())
}

// missed returns the status of a Subscription whose plan is gone.
func missed(before *operatorsv1alpha1.SubscriptionStatus, now metav1.Time) operatorsv1alpha1.SubscriptionStatus {
	status := *before.DeepCopy()
	if status.InstallPlanRef == nil {
		return status
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c operatorsv1alpha1.SubscriptionCondition) bool {
		return c.Type == operatorsv1alpha1.SubscriptionInstallPlanPending || c.Type == operatorsv1alpha1.SubscriptionInstallPlanFailed
	})
	status.Conditions = mergeConditions(nil, append(status.Conditions, planGone(status.InstallPlanRef.Name)), now)
	return status
}

// transition returns the transition that a Subscription shows when its status changes from before
// to after. The second result is false for no transition.
func transition(before, after *operatorsv1alpha1.SubscriptionStatus, f frame, now metav1.Time) (history.Transition, bool) {
	stage, refers := history.Shown(after)
	if !refers {
		return history.Transition{}, false
	}
	ref := after.InstallPlanRef
	if was, referred := history.Shown(before); referred && before.InstallPlanRef.UID == ref.UID && was == stage {
		return history.Transition{}, false
	}
	t := history.Transition{Plan: ref.Name, UID: ref.UID, Version: ref.ResourceVersion, Phase: stage.Phase, Reason: stage.Reason, Time: now}
	if f.plan != nil && stage != history.Missing() {
		t.Version, t.Time = f.plan.ResourceVersion, metav1.NewTime(f.at).Rfc3339Copy()
	}
	return t, true
}

// written reports whether a transition is the last entry of a log.
func written(ledger history.Log, t history.Transition) bool {
	last := ledger.Last()
	return last != nil && last.UID == t.UID && last.Stage() == t.Stage()
}

// label writes the component label of a Subscription without a log. The label depends on the spec
// only. Where the cache lags, it is therefore written to the version of the API server, and other
// writes wait for the cache.
func (r *Reconciler) label(ctx context.Context, sub *operatorsv1alpha1.Subscription) error {
	err := r.record(ctx, sub, nil)
	if !apierrors.IsConflict(err) {
		return err
	}
	live := metadataOf(sub)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(sub), live); err != nil {
		return fmt.Errorf("reading Subscription %s/%s to label it: %w", sub.Namespace, sub.Name, err)
	}
	if _, has := live.Annotations[api.AnnotationTransitions]; has || live.UID != sub.UID {
		return err
	}
	current := sub.DeepCopy()
	current.ResourceVersion = live.ResourceVersion
	if err := r.record(ctx, current, nil); err != nil {
		return err
	}
	r.lag.wrote(sub, current.ResourceVersion, r.clock.Now())
	return fmt.Errorf("%w: Subscription %s/%s", errBehind, sub.Namespace, sub.Name)
}

// record writes the component label and the log of a Subscription, and updates sub with the result.
func (r *Reconciler) record(ctx context.Context, sub *operatorsv1alpha1.Subscription, ledger history.Log) error {
	u := metadataOf(sub)
	// The UID and the version exclude a recreated object and one that another client has written.
	u.SetUID(sub.UID)
	u.SetResourceVersion(sub.ResourceVersion)
	u.SetLabels(map[string]string{plan.ComponentLabel(sub.Spec.Package, sub.Namespace): ""})
	if ledger != nil {
		u.SetAnnotations(map[string]string{api.AnnotationTransitions: ledger.Text()})
	}
	// The API server would answer client.Apply with the whole object.
	content, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encoding the ledger of Subscription %s/%s: %w", sub.Namespace, sub.Name, err)
	}
	patch := client.RawPatch(types.ApplyPatchType, content)
	if err := r.client.Patch(ctx, u, patch, client.FieldOwner(api.SubscriptionFieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("recording on Subscription %s/%s what its InstallPlan went through: %w", sub.Namespace, sub.Name, err)
	}
	sub.ResourceVersion, sub.Labels, sub.Annotations = u.GetResourceVersion(), u.GetLabels(), u.GetAnnotations()
	return nil
}

// labelled reports whether a Subscription has the component label.
func labelled(sub *operatorsv1alpha1.Subscription) bool {
	_, is := sub.Labels[plan.ComponentLabel(sub.Spec.Package, sub.Namespace)]
	return is
}
