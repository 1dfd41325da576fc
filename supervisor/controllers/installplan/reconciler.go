package installplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
)

// conflictDelay is the pause after a write that met a newer object.
const conflictDelay = 50 * time.Millisecond

// waitForAPI is how soon a plan is looked at again that waits for the API server to
// serve a new kind, which takes some seconds where there are several API servers.
const waitForAPI = 300 * time.Millisecond

// Reconciler moves one InstallPlan on by one phase, or runs one pass over its
// steps.
type Reconciler struct {
	// client reads from the cache, and writes plans.
	client client.Client
	// live reads OperatorGroups past the cache.
	live     client.Reader
	executor *executor
	recorder events.EventRecorder
	clock    clock.PassiveClock
	memory   *memory
	gate     *phaseGate

	retryTimeout time.Duration
	dwell        time.Duration
}

// Reconcile reads the plan, checks that the namespace can take an installation,
// applies what is left to apply, and writes the status once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &operatorsv1alpha1.InstallPlan{}
	if err := r.client.Get(ctx, req.NamespacedName, p); err != nil {
		if apierrors.IsNotFound(err) {
			r.memory.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading InstallPlan %s: %w", req, err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	rec := r.memory.record(req.NamespacedName, p)
	if rec.isStale(p) {
		// What this process wrote is on its way into the cache, and comes back here.
		return ctrl.Result{}, nil
	}
	if wait := rec.foreignDwell(p.Status.Phase, r.clock.Now(), r.dwell); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	before := p.DeepCopy()
	result := ctrl.Result{}
	if !rec.restore(p) {
		var err error
		if result, err = r.advance(ctx, p, rec); err != nil {
			return ctrl.Result{}, err
		}
	}
	return r.settle(ctx, before, p, rec, result)
}

// settle writes what came of a pass. A new phase waits until the Subscriptions show
// the one before; the work of a pass is then kept in mind, and not done again.
func (r *Reconciler) settle(ctx context.Context, before, p *operatorsv1alpha1.InstallPlan, rec *record, result ctrl.Result) (ctrl.Result, error) {
	if before.Status.Phase != p.Status.Phase {
		wait, err := r.gate.wait(ctx, before, rec.waited(r.clock.Now()))
		if err != nil {
			return ctrl.Result{}, err
		}
		if wait > 0 {
			rec.keep(before, p)
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	err := writeCause(ctx, r.client, before, p)
	written := false
	if err == nil {
		written, err = r.writeStatus(ctx, before, p)
	}
	if err != nil {
		// Somebody wrote another part of the plan: the work need not be done again.
		rec.keep(before, p)
		return silently(err)
	}
	if written {
		rec.wrote(p)
	}
	if written && ended(p) && !ended(before) {
		deleteOldPlans(ctx, r.client, p)
	}
	return result, nil
}

// advance changes the plan's status to what is true after this pass.
func (r *Reconciler) advance(ctx context.Context, p *operatorsv1alpha1.InstallPlan, rec *record) (ctrl.Result, error) {
	phase, moves := nextPhase(p)
	if moves {
		p.Status.Phase, p.Status.Message = phase, ""
	}
	switch {
	case p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		p.Status.Message = toApprove
	case p.Status.Message == toApprove:
		// Somebody else wrote the phase, and left the message of the one before.
		p.Status.Message = ""
	}
	if moves {
		// The phase is written before the work that it names: whoever watches sees
		// it, and a process that dies during the work leaves it behind.
		return ctrl.Result{}, nil
	}
	now := r.clock.Now()
	if wait := rec.backoff.due.Sub(now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseInstalling:
		return r.install(ctx, p, rec, metav1.NewTime(now))
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return r.probe(ctx, p, rec, now)
	default:
		return ctrl.Result{}, nil
	}
}

// install runs a pass over the steps of a plan.
func (r *Reconciler) install(ctx context.Context, p *operatorsv1alpha1.InstallPlan, rec *record, now metav1.Time) (ctrl.Result, error) {
	state, err := observeNamespace(ctx, r.live, r.client, p.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	recordAccount(p, state.account)
	if state.problem != "" {
		// The clock of the retry window starts when installation can start.
		p.Status.StartTime = nil
		setInstalled(p, operatorsv1alpha1.InstallPlanReasonInstallCheckFailed, state.problem, now)
		return ctrl.Result{}, nil
	}
	passCheck(p)
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

// conclude writes the outcome of a pass into the plan's status. StartTime is
// when the controller began with the steps or, once one of them has failed, when
// that one failed first.
func (r *Reconciler) conclude(ctx context.Context, p *operatorsv1alpha1.InstallPlan, rec *record, err error, now metav1.Time) ctrl.Result {
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
		// Another client wrote first, as often as it was tried.
		return ctrl.Result{RequeueAfter: conflictDelay}
	}
	failed, ok := errors.AsType[*stepError](err)
	if ok {
		stepFailures.WithLabelValues(failed.step.Resource.Kind).Inc()
		openWindow(p, &rec.backoff, failed, now)
		api.SetCause(p, causeOf(failed, slices.Index(p.Status.Plan, failed.step)))
	} else {
		api.SetCause(p, nil)
	}
	if terminal(err, now.Sub(p.Status.StartTime.Time), r.retryTimeout) {
		logger.Error(err, "Giving up on plan")
		if ok {
			rec.backoff.giveUp(slices.Index(p.Status.Plan, failed.step))
		}
		p.Status.Phase = operatorsv1alpha1.InstallPlanPhaseFailed
		p.Status.Message = err.Error()
		setInstalled(p, operatorsv1alpha1.InstallPlanReasonComponentFailed, strings.TrimSuffix(err.Error(), ".")+remedyFor(err), now)
		return ctrl.Result{}
	}
	after := nextTry(&rec.backoff, err, p.Status.StartTime.Time, now.Time, r.retryTimeout)
	logger.Info("Retrying step", "error", err.Error(), "after", after.String())
	p.Status.Message = retrying + err.Error()
	return ctrl.Result{RequeueAfter: after}
}

// silently turns a conflict into another try: somebody else wrote the object,
// and what they wrote is on its way here.
func silently(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
