package installplan

import (
	"context"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// waitForAPI is the pause while the API server does not serve a new kind yet. This takes some
// seconds where there are several API servers.
const waitForAPI = 300 * time.Millisecond

// reconciler moves one InstallPlan to its next phase, or runs one pass over its steps.
type reconciler struct {
	// client reads from the cache, and writes plans.
	client client.Client
	// live reads OperatorGroups past the cache.
	live     client.Reader
	executor *executor
	recorder events.EventRecorder
	clock    clock.PassiveClock
	records  *planRecords
	series   *planSeries
	gate     *phaseGate

	retryTimeout time.Duration
	// minForeignPhaseDuration is how long a phase stays that another client wrote.
	minForeignPhaseDuration time.Duration
}

// Reconcile reads the plan, checks its namespace, applies the remaining steps, and writes the status
// once.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &operatorsv1alpha1.InstallPlan{}
	if err := r.client.Get(ctx, req.NamespacedName, p); err != nil {
		if apierrors.IsNotFound(err) {
			r.records.forget(req.NamespacedName)
			r.series.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading InstallPlan %s: %w", req, err)
	}
	r.series.record(p)
	if !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	rec := r.records.get(req.NamespacedName, p)
	if rec.isStale(p) {
		// The cache will receive the last write, which requeues the plan.
		return ctrl.Result{}, nil
	}
	if wait := rec.foreignPhaseWait(p.Status.Phase, r.clock.Now(), r.minForeignPhaseDuration); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	before := p.DeepCopy()
	result := ctrl.Result{}
	if !rec.restoreOutcome(p) {
		var err error
		if result, err = r.advance(ctx, p, rec); err != nil {
			return ctrl.Result{}, err
		}
	}
	return r.write(ctx, before, p, rec, result)
}

// write writes the outcome of a pass. A new phase waits until the Subscriptions show the last one. The
// outcome is kept until it is written, and the pass is not repeated.
func (r *reconciler) write(ctx context.Context, before, p *operatorsv1alpha1.InstallPlan, rec *planRecord, result ctrl.Result) (ctrl.Result, error) {
	if before.Status.Phase != p.Status.Phase {
		wait, err := r.gate.wait(ctx, before, rec.waited(r.clock.Now()))
		if err != nil {
			return ctrl.Result{}, err
		}
		if wait > 0 {
			rec.storeOutcome(before, p)
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	err := writeCause(ctx, r.client, before, p)
	written := false
	if err == nil {
		written, err = writeStatus(ctx, r.client, r.recorder, before, p)
	}
	if err != nil {
		rec.storeOutcome(before, p)
		return apply.RequeueConflict(client.IgnoreNotFound(err))
	}
	if written {
		rec.recordWrite(p)
	}
	if written && isFinished(p) && !isFinished(before) {
		deleteOldPlans(ctx, r.client, p)
	}
	return result, nil
}

// advance sets the status of the plan after this pass.
func (r *reconciler) advance(ctx context.Context, p *operatorsv1alpha1.InstallPlan, rec *planRecord) (ctrl.Result, error) {
	now := r.clock.Now()
	if p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
		p.Status.Message = ""
		if ready, err := r.checkGroup(ctx, p, metav1.NewTime(now)); err != nil || !ready {
			return ctrl.Result{}, err
		}
	}
	if phase, moves := nextPhase(p); moves {
		// The phase is written before its work begins, so that watchers see it.
		p.Status.Phase, p.Status.Message = phase, ""
		return ctrl.Result{}, nil
	}
	if wait := rec.backoff.due.Sub(now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseInstalling:
		return r.install(ctx, p, rec, metav1.NewTime(now))
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return r.retryFailed(ctx, p, rec, now)
	default:
		return ctrl.Result{}, nil
	}
}

// checkGroup reports whether the OperatorGroup of a plan that waits for approval permits its installation. If not, the plan
// has a condition, and stays in its phase. The cache is enough: install reads the API server.
func (r *reconciler) checkGroup(ctx context.Context, p *operatorsv1alpha1.InstallPlan, now metav1.Time) (bool, error) {
	state, err := observeNamespace(ctx, r.client, r.client, p.Namespace)
	if err != nil {
		return false, err
	}
	if state.problem != "" {
		setInstalled(p, operatorsv1alpha1.InstallPlanReasonInstallCheckFailed, state.problem, now)
		return false, nil
	}
	removeInstalled(p, operatorsv1alpha1.InstallPlanReasonInstallCheckFailed)
	return true, nil
}

// install runs a pass over the steps of a plan.
func (r *reconciler) install(ctx context.Context, p *operatorsv1alpha1.InstallPlan, rec *planRecord, now metav1.Time) (ctrl.Result, error) {
	state, err := observeNamespace(ctx, r.live, r.client, p.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if state, err = r.withAccountOf(ctx, p, state); err != nil {
		return ctrl.Result{}, err
	}
	recordAccount(p, state.account)
	if state.problem != "" {
		// The clock of the retry window starts when installation can start.
		p.Status.StartTime = nil
		setInstalled(p, operatorsv1alpha1.InstallPlanReasonInstallCheckFailed, state.problem, now)
		return ctrl.Result{}, nil
	}
	removeInstalled(p, operatorsv1alpha1.InstallPlanReasonInstallCheckFailed)
	if p.Status.StartTime == nil {
		p.Status.StartTime = &now
	}
	e, err := r.executor.execution(p, state, &eventReporter{recorder: r.recorder, plan: p, notes: rec.warned}, false)
	if err != nil {
		return ctrl.Result{}, err
	}
	result := r.conclude(ctx, p, rec, e.run(ctx, p.Status.Plan), now)
	if p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
		e.recordRemainingWarnings(ctx, p.Status.Plan)
	}
	return result, nil
}
