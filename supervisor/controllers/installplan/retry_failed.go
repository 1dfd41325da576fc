package installplan

import (
	"context"
	"errors"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// mayRecover reports whether this controller gave up on a plan because of a step that may succeed
// later. Errors in the plan itself never end, and a phase Failed of another client stays.
func mayRecover(p *operatorsv1alpha1.InstallPlan) bool {
	installed := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed && remaining(p.Status.Plan) > 0 &&
		installed.Reason == operatorsv1alpha1.InstallPlanReasonComponentFailed && !failedPermanently(p) &&
		!slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool {
			return s.Status == operatorsv1alpha1.StepStatusUnsupportedResource
		})
}

// retryFailed checks with a dry run whether the failed step of a plan would succeed now. If so, the plan
// returns to the phase Installing.
func (r *reconciler) retryFailed(ctx context.Context, p *operatorsv1alpha1.InstallPlan, rec *planRecord, now time.Time) (ctrl.Result, error) {
	if !mayRecover(p) {
		return ctrl.Result{}, nil
	}
	if needed, err := isReferenced(ctx, r.client, p); err != nil || !needed {
		return ctrl.Result{}, err
	}
	if rec.backoff.due.IsZero() && !rec.retryNow {
		return ctrl.Result{RequeueAfter: rec.backoff.nextCheck(now)}, nil
	}
	triggered := rec.retryNow
	rec.retryNow = false
	state, err := observeNamespace(ctx, r.client, r.client, p.Namespace)
	if err == nil {
		state, err = r.withAccountOf(ctx, p, state)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if state.problem == "" && r.wouldApply(ctx, p, state) {
		log.FromContext(ctx).Info("Trying a failed plan again, as the step that failed would succeed now")
		p.Status.Phase, p.Status.Message, p.Status.StartTime = operatorsv1alpha1.InstallPlanPhaseInstalling, "", nil
		removeInstalled(p, operatorsv1alpha1.InstallPlanReasonComponentFailed)
		api.SetCause(p, nil)
		return ctrl.Result{}, nil
	}
	if triggered {
		// An event may precede its effect: the cache has a definition before its kind is served.
		return ctrl.Result{RequeueAfter: rec.backoff.pause(now, pauseTriggered)}, nil
	}
	return ctrl.Result{RequeueAfter: rec.backoff.nextCheck(now)}, nil
}

// wouldApply reports whether the failed step of a plan would succeed.
func (r *reconciler) wouldApply(ctx context.Context, p *operatorsv1alpha1.InstallPlan, in namespaceState) bool {
	tried := p.DeepCopy()
	e, err := r.executor.execution(tried, in, logReporter{log.FromContext(ctx)}, true)
	if err != nil {
		return false
	}
	steps, failed := tried.Status.Plan, failedStep(tried)
	obstacle := e.dryRun(ctx, steps, failed)
	if obstacle != nil && errors.Is(obstacle.err, errOwnerDeleted) {
		// A pass would start over with that version.
		resetSteps(steps, obstacle.step.Resolving)
		obstacle = e.dryRun(ctx, steps, failed)
	}
	if obstacle != nil {
		log.FromContext(ctx).V(1).Info("Failed plan would fail again", "error", obstacle.Error())
	}
	return obstacle == nil
}

// failedPermanently reports whether a plan failed with an error that no try can fix. A former release
// recorded no cause. Its plans are checked, which writes nothing.
func failedPermanently(p *operatorsv1alpha1.InstallPlan) bool {
	cause, found := api.CauseOf(p)
	return found && cause.Final
}

// failedStep returns the step at which a plan failed. It returns the first remaining step if the plan
// has no cause, or if the step was applied since.
func failedStep(p *operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.Step {
	if cause, found := api.CauseOf(p); found && cause.Step != nil && *cause.Step < len(p.Status.Plan) {
		if s := p.Status.Plan[*cause.Step]; !plansteps.IsApplied(s.Status) {
			return s
		}
	}
	i := slices.IndexFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool { return !plansteps.IsApplied(s.Status) })
	if i < 0 {
		return nil
	}
	return p.Status.Plan[i]
}
