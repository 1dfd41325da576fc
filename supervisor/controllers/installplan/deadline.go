package installplan

import (
	"context"
	"errors"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/crd/upgradesafety"
)

// conclude sets the status of the plan after a pass. StartTime is when the first pass began or, if a
// step fails, when that step failed first.
func (r *reconciler) conclude(ctx context.Context, p *operatorsv1alpha1.InstallPlan, rec *planRecord, err *stepError, now metav1.Time) ctrl.Result {
	logger := log.FromContext(ctx)
	if err == nil {
		api.SetCause(p, nil)
		p.Status.Message = ""
		rec.backoff.failures = 0
		if remaining(p.Status.Plan) > 0 {
			return ctrl.Result{RequeueAfter: waitForAPI}
		}
		p.Status.Phase = operatorsv1alpha1.InstallPlanPhaseComplete
		setInstalled(p, "", "", now)
		return ctrl.Result{}
	}
	if errors.Is(err, errChanged) {
		return ctrl.Result{RequeueAfter: apply.ConflictDelay}
	}
	step := slices.Index(p.Status.Plan, err.step)
	stepFailures.WithLabelValues(err.step.Resource.Kind).Inc()
	openWindow(p, &rec.backoff, err, now)
	api.SetCause(p, causeOf(err, step))
	if terminal(err, now.Sub(p.Status.StartTime.Time), r.retryTimeout) {
		logger.Error(err, "Giving up on plan")
		rec.backoff.recordFailedStep(step)
		p.Status.Phase = operatorsv1alpha1.InstallPlanPhaseFailed
		p.Status.Message = err.Error()
		setInstalled(p, operatorsv1alpha1.InstallPlanReasonComponentFailed, err.Error()+remedyFor(err), now)
		return ctrl.Result{}
	}
	after := nextTry(&rec.backoff, err, p.Status.StartTime.Time, now.Time, r.retryTimeout)
	logger.Info("Retrying step", "error", err.Error(), "after", after.String())
	p.Status.Message = olmtext.Retrying + err.Error()
	return ctrl.Result{RequeueAfter: after}
}

// openWindow sets status.startTime to now if the retry window of the failed step begins. Each step
// has one window, and its plan fails when the window of the failing step ends. A plan with n steps
// therefore ends after n+1 windows at the latest.
//
// The cause of the plan names the step and the status has startTime, so that the next process
// continues the window. The steps of a recreated version have new windows.
func openWindow(p *operatorsv1alpha1.InstallPlan, b *backoff, failed *stepError, now metav1.Time) {
	if errors.Is(failed.err, errOwnerDeleted) {
		b.windows = nil
	}
	step := slices.Index(p.Status.Plan, failed.step)
	begins := b.openWindow(step)
	last, failing := api.CauseOf(p)
	if !begins || failing && last.Step != nil && *last.Step == step && p.Status.Message != "" {
		return
	}
	p.Status.StartTime = &now
	b.failures = 0
}

// nextTry returns the pause before the next try of a step that failed with err. The last try of a
// plan is at its deadline.
func nextTry(b *backoff, err error, start, now time.Time, retryTimeout time.Duration) time.Duration {
	after := b.fail(now, maxPauseAfter(err))
	if ends := terminal(err, retryTimeout, retryTimeout); !ends {
		return after
	}
	if left := start.Add(retryTimeout).Sub(now); left < after {
		return b.pause(now, left)
	}
	return after
}

// terminal reports whether an error ends the plan. elapsed is how long the step has been failing. An
// error that the user or the author of the bundle has to fix ends the plan after retryTimeout: an API
// may be registered some time later. Temporary errors, missing permissions, quotas and admission policies
// never end a plan.
//
// A refusal of a CustomResourceDefinition ends the plan at once: an administrator has to decide, and
// the plan continues if the cause is removed.
func terminal(err error, elapsed, retryTimeout time.Duration) bool {
	if _, refused := errors.AsType[*upgradesafety.RefusalError](err); refused || isPermanent(err) {
		return true
	}
	if isDenied(err) || isTransient(err) {
		return false
	}
	return isLasting(err) && elapsed >= retryTimeout
}

// isLasting reports whether a user has to fix something before a try can succeed.
func isLasting(err error) bool {
	return errors.Is(err, errOwnerMissing) || errors.Is(err, errNamesRefused) || errors.Is(err, errOtherOwner) ||
		errors.Is(err, errUnsafe) || errors.Is(err, errSecretMissing) ||
		isUnknownBundle(err) || apimeta.IsNoMatchError(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err)
}
