package installplan

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/chandlery/chandlery/supervisor/plan"
)

const (
	// waitForAPI is how soon a plan is looked at again that waits for the API
	// server to serve a new kind, which takes it a fraction of a second.
	waitForAPI = 300 * time.Millisecond
	// retryAfter is how soon a step is tried again that failed.
	retryAfter = 2 * time.Second
)

// Reconciler moves one InstallPlan on by one phase, or runs one pass over its
// steps.
type Reconciler struct {
	client       client.Client
	bundles      bundleReader
	recorder     events.EventRecorder
	clock        clock.PassiveClock
	retryTimeout time.Duration
}

// Reconcile reads the plan, checks that the namespace can take an installation,
// applies what is left to apply, and writes the status once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &operatorsv1alpha1.InstallPlan{}
	if err := r.client.Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading InstallPlan %s: %w", req, err))
	}
	if !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := p.DeepCopy()
	result, err := r.advance(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.writeStatus(ctx, before, p); err != nil {
		return silently(err)
	}
	return result, nil
}

// advance changes the plan's status to what is true after this pass.
func (r *Reconciler) advance(ctx context.Context, p *operatorsv1alpha1.InstallPlan) (ctrl.Result, error) {
	phase, moves := nextPhase(p)
	if moves {
		p.Status.Phase, p.Status.Message = phase, ""
	}
	if p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
		p.Status.Message = toApprove
	}
	// The phase is written before the work that it names: whoever watches sees
	// it, and a process that dies during the work leaves it behind.
	if moves || p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseInstalling {
		return ctrl.Result{}, nil
	}
	now := metav1.NewTime(r.clock.Now())
	problem, err := r.namespaceProblem(ctx, p.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if problem != "" {
		// The clock of the retry window starts when installation can start.
		p.Status.StartTime = nil
		setInstalled(p, operatorsv1alpha1.InstallPlanReasonInstallCheckFailed, problem, now)
		return ctrl.Result{}, nil
	}
	passCheck(p)
	if p.Status.StartTime == nil {
		p.Status.StartTime = &now
	}
	e := &execution{
		client: r.client, bundles: r.bundles, namespace: p.Namespace, plan: p.Name,
		owners: map[string]metav1.OwnerReference{}, fetched: map[string]plan.Bundle{},
	}
	return r.conclude(ctx, p, e.run(ctx, p.Status.Plan), now), nil
}

// conclude writes the outcome of a pass into the plan's status. StartTime is
// when the controller began with the steps or, once one of them has failed, when
// that one failed first.
func (r *Reconciler) conclude(ctx context.Context, p *operatorsv1alpha1.InstallPlan, err error, now metav1.Time) ctrl.Result {
	logger := log.FromContext(ctx)
	if err == nil {
		p.Status.Message = ""
		if remaining(p.Status.Plan) > 0 {
			return ctrl.Result{RequeueAfter: waitForAPI}
		}
		p.Status.Phase = operatorsv1alpha1.InstallPlanPhaseComplete
		setInstalled(p, "", "", now)
		return ctrl.Result{}
	}
	if failed, ok := errors.AsType[*stepError](err); ok {
		stepFailures.WithLabelValues(failed.step.Resource.Kind).Inc()
		if !failed.follows(p.Status.Message) {
			// The retry window is that of the step that fails now, not that of
			// those before it. Both halves of the rule are in the status, so
			// that the next process goes on counting from the same moment.
			p.Status.StartTime = &now
		}
	}
	if terminal(err, now.Sub(p.Status.StartTime.Time), r.retryTimeout) {
		logger.Error(err, "Giving up on plan")
		p.Status.Phase = operatorsv1alpha1.InstallPlanPhaseFailed
		p.Status.Message = ""
		setInstalled(p, operatorsv1alpha1.InstallPlanReasonComponentFailed, strings.TrimSuffix(err.Error(), ".")+remedy, now)
		return ctrl.Result{}
	}
	logger.Info("Retrying step", "error", err.Error(), "after", retryAfter.String())
	p.Status.Message = retrying + err.Error()
	return ctrl.Result{RequeueAfter: retryAfter}
}

// silently turns a conflict into another try: somebody else wrote the object,
// and what they wrote is on its way here.
func silently(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
