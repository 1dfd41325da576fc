package clusterserviceversion

import (
	"context"
	"errors"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// errorWriteTimeout bounds the write of the status with an error.
const errorWriteTimeout = 10 * time.Second

// stateAfterError returns the state of a version whose observation failed.
func stateAfterError(csv *operatorsv1alpha1.ClusterServiceVersion, now time.Time) *state {
	return &state{Input: phase.Input{
		CSV: csv, Now: now, Requirements: phase.Requirements{Statuses: csv.Status.RequirementStatus},
	}}
}

// handleError returns an error, so that it is retried soon. When errors have lasted for some time, it
// writes the transition that shows them.
func (r *reconciler) handleError(ctx context.Context, s *state, t phase.Transition, err error) (reconcile.Result, error) {
	// Another client wrote first, or the supervisor stops.
	passing := apierrors.IsConflict(err) || errors.Is(err, apply.ErrStale) || errors.Is(ctx.Err(), context.Canceled)
	// Proxies that are unknown at the start of the supervisor seldom become known without a change.
	proxiesUnknown := t.Cause.Reason == api.ReasonProxiesUnknown
	if passing || !proxiesUnknown && r.errorTimes.record(client.ObjectKeyFromObject(s.CSV), s.Now, r.clock.Now()) < phase.ErrorDelay {
		return ctrl.Result{}, err
	}
	logf.FromContext(ctx).Error(err, "Reconciliation failed, retrying", "phase", s.CSV.Status.Phase, "after", t.After.String())
	if repeats(s.CSV, t, s.Now) {
		return ctrl.Result{RequeueAfter: t.After}, nil
	}
	// The time of this pass may have run out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), errorWriteTimeout)
	defer cancel()
	if err := r.record(ctx, s, t); err != nil {
		return ctrl.Result{}, err
	}
	if proxiesUnknown {
		emitProxiesUnknown(r.events, s.CSV, err)
	}
	return ctrl.Result{RequeueAfter: t.After}, nil
}

// repeats reports whether a transition replaces an error that was written a short time ago. A write at each try is not worthwhile.
func repeats(csv *operatorsv1alpha1.ClusterServiceVersion, t phase.Transition, now time.Time) bool {
	shown, _ := api.CauseOf(csv)
	written := csv.Status.LastUpdateTime
	return shown.PhaseMessage != "" && t.Cause.PhaseMessage != "" && written != nil && now.Sub(written.Time) < phase.ErrorDelay
}
