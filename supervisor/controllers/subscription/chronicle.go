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

// frame is what a Subscription is to tell of its plan at one moment.
type frame struct {
	// plan is as it was then; nil for none.
	plan *operatorsv1alpha1.InstallPlan
	at   time.Time
	// recorded says that the ledger has it already: who wrote that died before the
	// status told it.
	recorded bool
	// missing says that the plan that is referred to was gone.
	missing bool
}

// chronicle is all that is to be written on a Subscription, in order.
type chronicle struct {
	ledger history.Ledger
	// statuses are those to be written; since says when what each tells was seen,
	// zero for what is no transition.
	statuses []operatorsv1alpha1.SubscriptionStatus
	since    []time.Time
	// fresh are the transitions that the ledger did not have.
	fresh []history.Transition
	// more says that there is more to be told after all this.
	more bool
}

// batch is how many transitions are written at once: a ledger has room for them.
const batch = history.MaxTransitions / 2

// pages gives the stages that a plan went through after a version, and the newest
// version of it that is known; nil when none is.
type pages func(plan types.UID, version uint64) ([]sighting, *sighting)

// frames gives what a Subscription has yet to tell, in order. The last frame is what
// is so now, of plan p; nil for no plan. False when nothing is known of p yet.
func frames(sub *operatorsv1alpha1.Subscription, ledger history.Ledger, find pages, p *operatorsv1alpha1.InstallPlan, at time.Time) ([]frame, bool) {
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
		// It came to this stage earlier, and has another message at most.
		now.at, s.frames = s.frames[n-1].at, s.frames[:n-1]
	}
	return append(s.frames, now), true
}

// shares says whether two frames are of the same plan at the same stage.
func (f frame) shares(other frame) bool {
	return f.plan != nil && f.plan.UID == other.plan.UID && history.StageOf(f.plan) == history.StageOf(other.plan)
}

// sequel collects what comes after what a Subscription and its ledger tell.
type sequel struct {
	sub     *operatorsv1alpha1.Subscription
	find    pages
	reached map[types.UID]uint64 // the version up to which a plan is told
	frames  []frame
}

// recall adds what the ledger says ahead of the status.
func (s *sequel) recall(ahead history.Ledger) {
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

// untold adds the stages of a plan that come after what is told of it, and gives the
// newest version. What a plan went through before it served the Subscription is none
// of its business.
func (s *sequel) untold(of types.UID) *sighting {
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

// fromTheBeginning adds the stage that every plan begins at, where the API server has
// forgotten it: a plan is created without a status. A plan that is older than the
// Subscription has begun without it.
func fromTheBeginning(stages []sighting, sub *operatorsv1alpha1.Subscription) []sighting {
	if len(stages) == 0 {
		return nil
	}
	first := stages[0]
	born := first.plan.CreationTimestamp
	if history.StageOf(first.plan) == history.StageOf(&operatorsv1alpha1.InstallPlan{}) || !serves(first.plan, sub) || born.Before(&sub.CreationTimestamp) {
		return stages
	}
	begun := sighting{version: first.version - 1, at: born.Time, plan: first.plan.DeepCopy()}
	begun.plan.Status = operatorsv1alpha1.InstallPlanStatus{}
	begun.plan.ResourceVersion = strconv.FormatUint(begun.version, 10)
	return append([]sighting{begun}, stages...)
}

// divide parts a ledger into what the status of a Subscription has told and what was
// written ahead of it.
func divide(status *operatorsv1alpha1.SubscriptionStatus, ledger history.Ledger, p *operatorsv1alpha1.InstallPlan) (told, ahead history.Ledger) {
	ref := status.InstallPlanRef
	if ref == nil {
		// Either the first transitions were written and their statuses were not, or
		// the status was lost, which told all there was.
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

// recall gives the plan of a transition as it was then, as far as that is known.
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

// serves says whether a plan is a Subscription's, by its owner references or by what
// is noted beside them.
func serves(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	_, noted := p.Annotations[api.PrefixServes+string(sub.UID)]
	return noted || isOwner(p, sub)
}

// chronicle works out, frame by frame, what the Subscription of a decision is to tell
// and what its ledger is to say.
func (o *observation) chronicle(d *decision, ledger history.Ledger, list []frame, now metav1.Time) chronicle {
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

// enter adds a transition to the ledger. The last one of all is seen live.
func (c *chronicle) enter(t history.Transition, last bool) {
	t.Observed = history.Afterwards
	if last {
		t.Observed = history.Live
	}
	if newest := c.ledger.Last(); newest != nil && t.Time.Before(&newest.Time) {
		// Clocks differ, and the API server rounds down.
		t.Time = newest.Time
	}
	c.ledger = c.ledger.Append(t)
	c.fresh = append(c.fresh, *c.ledger.Last())
}

// missed is what a Subscription tells when the plan that it refers to is gone.
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

// transition says whether a Subscription that tells one status and then another has
// told of a transition, and which.
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

// written says whether a transition is the last that a ledger has.
func written(ledger history.Ledger, t history.Transition) bool {
	last := ledger.Last()
	return last != nil && last.UID == t.UID && last.Stage() == t.Stage()
}

// label writes the component label of a Subscription without a ledger. The label follows from the
// spec, so that it is written to the version of the API server where the cache is late. What else
// there is to write waits for the cache then.
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

// record writes the component label and the ledger of a Subscription, which is what it
// is by then.
func (r *Reconciler) record(ctx context.Context, sub *operatorsv1alpha1.Subscription, ledger history.Ledger) error {
	u := metadataOf(sub)
	// Neither one that was recreated nor one that another client has
	// written is meant.
	u.SetUID(sub.UID)
	u.SetResourceVersion(sub.ResourceVersion)
	u.SetLabels(map[string]string{plan.ComponentLabel(sub.Spec.Package, sub.Namespace): ""})
	if ledger != nil {
		u.SetAnnotations(map[string]string{api.AnnotationTransitions: ledger.Text()})
	}
	// client.Apply would be answered with the whole object.
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

// labelled says whether a Subscription has the component label.
func labelled(sub *operatorsv1alpha1.Subscription) bool {
	_, is := sub.Labels[plan.ComponentLabel(sub.Spec.Package, sub.Namespace)]
	return is
}
