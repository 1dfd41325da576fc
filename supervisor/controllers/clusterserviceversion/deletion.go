package clusterserviceversion

import (
	"context"
	"errors"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/cleanup"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// finalize makes one pass of the clean-up after a ClusterServiceVersion that is being deleted. It
// removes the finalizer when nothing is left.
func (r *reconciler) finalize(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(csv, api.FinalizerCleanup) {
		return ctrl.Result{}, nil
	}
	if exists, err := r.cleaner.Exists(ctx, csv); err != nil || !exists {
		return ctrl.Result{}, err
	}
	r.gauges.record(csv, phase.Transition{Phase: csv.Status.Phase, Reason: csv.Status.Reason})
	p, err := r.cleaner.Run(ctx, csv)
	switch {
	case p.Done:
		logf.FromContext(ctx).Info("Cleaned up", "customResourcesLeft", p.Kept)
		emitResourcesKept(r.events, csv, p.Kept)
		return ctrl.Result{}, client.IgnoreNotFound(r.writer.setFinalizer(ctx, csv, controllerutil.RemoveFinalizer))
	case p.Report == nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.After}, errors.Join(err, r.recordCleanup(ctx, csv, p.Report))
}

// recordCleanup writes into the status what the clean-up waits for, if it differs. It does not
// change the phase, which remains the one at the time of the deletion. Progress is written every
// few seconds.
func (r *reconciler) recordCleanup(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, report *cleanup.Report) error {
	want := report.Status(csv.Status, r.clock.Now())
	if want == nil {
		return nil
	}
	err := r.writer.write(ctx, csv, *want, report.Cause)
	if err == nil {
		emitCleanup(r.events, csv, report)
	}
	return client.IgnoreNotFound(err)
}
