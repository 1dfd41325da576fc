package installplan

import (
	"context"
	"errors"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
)

// curable says whether this controller gave up on a plan because of a step that may
// be applied one day. What lies in the plan itself does not pass, and what somebody
// else declared failed stays so.
func curable(p *operatorsv1alpha1.InstallPlan) bool {
	installed := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed && remaining(p.Status.Plan) > 0 &&
		installed.Reason == operatorsv1alpha1.InstallPlanReasonComponentFailed && !finally(p) &&
		!slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool {
			return s.Status == operatorsv1alpha1.StepStatusUnsupportedResource
		})
}

// probe looks whether the cause is gone for which a plan was given up: it does
// what a pass would do up to the step that failed, without applying anything. The
// plan says that it has failed until that step would succeed; then it goes on by
// itself.
func (r *Reconciler) probe(ctx context.Context, p *operatorsv1alpha1.InstallPlan, rec *record, now time.Time) (ctrl.Result, error) {
	if !curable(p) {
		return ctrl.Result{}, nil
	}
	if wanted, err := r.wanted(ctx, p); err != nil || !wanted {
		return ctrl.Result{}, err
	}
	if rec.due.IsZero() && !rec.roused {
		return ctrl.Result{RequeueAfter: rec.rest(now)}, nil
	}
	roused := rec.roused
	rec.roused = false
	site, err := r.survey(ctx, r.client, p.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if site.problem == "" && r.wouldApply(ctx, p, site) {
		log.FromContext(ctx).Info("Trying a failed plan again, as the step that failed would succeed now")
		p.Status.Phase, p.Status.Message, p.Status.StartTime = operatorsv1alpha1.InstallPlanPhaseInstalling, "", nil
		dropInstalled(p, operatorsv1alpha1.InstallPlanReasonComponentFailed)
		api.SetCause(p, nil)
		return ctrl.Result{}, nil
	}
	if roused {
		// What happened may take a moment to have its effect: a definition is seen
		// before its kind is served.
		return ctrl.Result{RequeueAfter: rec.wait(now, pauseRoused)}, nil
	}
	return ctrl.Result{RequeueAfter: rec.rest(now)}, nil
}

// wouldApply says whether a pass would get beyond the step that failed.
func (r *Reconciler) wouldApply(ctx context.Context, p *operatorsv1alpha1.InstallPlan, at site) bool {
	tried := p.DeepCopy()
	e, err := r.execution(tried, at, logReporter{log.FromContext(ctx)})
	if err != nil {
		return false
	}
	e.client, e.steps = client.NewDryRunClient(e.client), client.NewDryRunClient(e.steps)
	steps, failed := tried.Status.Plan, failedStep(tried)
	obstacle := e.rehearse(ctx, steps, failed)
	if obstacle != nil && errors.Is(obstacle.err, errOwnerGone) {
		// A pass would start over with that version.
		startOver(steps, obstacle.step.Resolving)
		obstacle = e.rehearse(ctx, steps, failed)
	}
	if obstacle != nil {
		log.FromContext(ctx).V(1).Info("Failed plan would fail again", "error", obstacle.Error())
	}
	return obstacle == nil
}

// finally reports whether a plan failed for a cause that cannot pass. A former release recorded no cause: its plans
// are tried as far as nothing is written.
func finally(p *operatorsv1alpha1.InstallPlan) bool {
	cause, found := api.CauseOf(p)
	return found && cause.Final
}

// failedStep returns the step for which a plan was given up; the first that is left where the plan has no cause, or
// the step was applied since.
func failedStep(p *operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.Step {
	if cause, found := api.CauseOf(p); found && cause.Step != nil && *cause.Step < len(p.Status.Plan) && !applied(p.Status.Plan[*cause.Step].Status) {
		return p.Status.Plan[*cause.Step]
	}
	i := slices.IndexFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool { return !applied(s.Status) })
	if i < 0 {
		return nil
	}
	return p.Status.Plan[i]
}

// rehearse does what a pass does up to a step, and says what would end it. All that
// is left is examined, as a pass does. Of the steps before that one only the versions
// are tried, which own what follows: without being applied, a step may lack what
// another one brings, so that the others are taken to succeed.
func (e *execution) rehearse(ctx context.Context, steps []*operatorsv1alpha1.Step, until *operatorsv1alpha1.Step) *stepError {
	if err := e.examine(ctx, steps); err != nil {
		return err
	}
	for _, s := range steps {
		if !applied(s.Status) && (s == until || s.Resource.Kind == operatorsv1alpha1.ClusterServiceVersionKind) {
			// What has to be deleted and made again is still there.
			if _, err := e.step(ctx, s); err != nil && !errors.Is(err, errChanged) {
				return &stepError{step: s, err: err}
			}
		}
		if s == until {
			break
		}
	}
	return nil
}

// wanted says whether a Subscription still refers to a plan.
func (r *Reconciler) wanted(ctx context.Context, p *operatorsv1alpha1.InstallPlan) (bool, error) {
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := r.client.List(ctx, list, client.InNamespace(p.Namespace), readOnly); err != nil {
		return false, err //nolint:wrapcheck // the cache only fails while it is being stopped
	}
	for i := range list.Items {
		if ref := list.Items[i].Status.InstallPlanRef; ref != nil && ref.UID == p.UID {
			return true, nil
		}
	}
	return len(subscriptionsOf(p)) == 0, nil
}

// subscriptionsOf gives the UIDs of the Subscriptions that a plan serves.
func subscriptionsOf(p *operatorsv1alpha1.InstallPlan) []types.UID {
	var list []types.UID
	for _, ref := range p.OwnerReferences {
		if ref.Kind == operatorsv1alpha1.SubscriptionKind {
			list = append(list, ref.UID)
		}
	}
	return list
}
