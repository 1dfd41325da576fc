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
)

// finalize makes one pass of the clean-up after a ClusterServiceVersion that is being deleted. It
// removes the finalizer when nothing is left.
func (r *reconciler) finalize(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(csv, api.FinalizerCleanup) {
		return ctrl.Result{}, nil
	}
	if exists, err := r.cleaner.exists(ctx, csv); err != nil || !exists {
		return ctrl.Result{}, err
	}
	r.gauges.record(csv, Transition{Phase: csv.Status.Phase, Reason: csv.Status.Reason})
	p, err := r.cleaner.run(ctx, csv)
	switch {
	case p.done:
		logf.FromContext(ctx).Info("Cleaned up", "customResourcesLeft", p.kept)
		announceLeft(r.events, csv, p.kept)
		return ctrl.Result{}, client.IgnoreNotFound(r.writer.setFinalizer(ctx, csv, controllerutil.RemoveFinalizer))
	case p.telling.message == "":
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.after}, errors.Join(err, r.recordCleanup(ctx, csv, p.telling))
}

// recordCleanup writes into the status what the clean-up waits for, if it differs. It does not
// change the phase, which remains the one at the time of the deletion. Progress is written every
// few seconds.
func (r *reconciler) recordCleanup(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, t telling) error {
	want := cleanupStatus(csv.Status, t, r.clock.Now())
	if want == nil {
		return nil
	}
	err := r.writer.write(ctx, csv, *want, t.cause)
	if err == nil {
		announceCleanup(r.events, csv, t)
	}
	return client.IgnoreNotFound(err)
}
