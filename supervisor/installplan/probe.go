package installplan

import (
	"context"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// curable says whether this controller gave up on a plan because of a step that it
// could not apply. What somebody else declared failed stays so.
func curable(p *operatorsv1alpha1.InstallPlan) bool {
	installed := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed && remaining(p.Status.Plan) > 0 &&
		installed.Reason == operatorsv1alpha1.InstallPlanReasonComponentFailed
}

// probe looks whether the cause is gone for which a plan was given up: it asks the
// API server what would become of the next step, without applying it. The plan says
// that it has failed until the step would succeed; then it goes on by itself.
func (r *Reconciler) probe(ctx context.Context, p *operatorsv1alpha1.InstallPlan, rec *record, now time.Time) (ctrl.Result, error) {
	if !curable(p) {
		return ctrl.Result{}, nil
	}
	if wanted, err := r.wanted(ctx, p); err != nil || !wanted {
		return ctrl.Result{}, err
	}
	if rec.due.IsZero() && rec.failures == 0 && !rec.roused {
		return ctrl.Result{RequeueAfter: rec.postpone(now, firstPauseFailed, maxPauseFailed)}, nil
	}
	rec.roused = false
	site, err := r.survey(ctx, p.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if site.problem == "" && r.wouldApply(ctx, p, site.account) {
		log.FromContext(ctx).Info("Trying a failed plan again, as its next step would succeed now")
		p.Status.Phase, p.Status.Message, p.Status.StartTime = operatorsv1alpha1.InstallPlanPhaseInstalling, "", nil
		dropInstalled(p, operatorsv1alpha1.InstallPlanReasonComponentFailed)
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: rec.postpone(now, firstPauseFailed, maxPauseFailed)}, nil
}

// wouldApply tries the first step that is left, without writing anything.
func (r *Reconciler) wouldApply(ctx context.Context, p *operatorsv1alpha1.InstallPlan, a *account) bool {
	e, err := r.execution(ctx, p, a, true)
	if err != nil {
		return false
	}
	for _, s := range p.Status.Plan {
		if applied(s.Status) {
			continue
		}
		tried := s.DeepCopy()
		if tried.Status == operatorsv1alpha1.StepStatusUnsupportedResource {
			return false
		}
		if failure := e.examine(ctx, []*operatorsv1alpha1.Step{tried}); failure != nil {
			return false
		}
		_, err := e.step(ctx, tried)
		return err == nil
	}
	return true
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
