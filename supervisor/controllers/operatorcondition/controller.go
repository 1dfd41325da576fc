package operatorcondition

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// reconciler reconciles the OperatorCondition of each version with its role and binding.
type reconciler struct {
	client   client.Client
	clock    clock.PassiveClock
	events   events.EventRecorder
	reported sync.Map // by version, the last reported problem with objects of other owners
}

// Reconcile creates and updates the objects of one version. All of them have the name of the
// version.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decide(o)
	r.reportOtherOwners(ctx, req, o, d.otherOwners)
	err = r.act(ctx, o, d)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// The version is deleted with its namespace and needs no other objects.
		return ctrl.Result{}, nil
	}
	return apply.RequeueConflict(err)
}

func (r *reconciler) act(ctx context.Context, o input, d decision) error {
	log := logf.FromContext(ctx)
	for _, obj := range d.apply {
		if err := write(ctx, r.client, obj); err != nil {
			return err
		}
		log.Info("Applied", "kind", obj.GetObjectKind().GroupVersionKind().Kind)
	}
	if d.recreate != nil {
		if err := remove(ctx, r.client, d.recreate); err != nil {
			return err
		}
		log.Info("Deleted a RoleBinding to another role, to recreate it", "role", d.recreate.RoleRef.Name)
	}
	if !d.updateStatus {
		return nil
	}
	if err := writeStatus(ctx, r.client, o.condition, d.conditions); err != nil {
		return client.IgnoreNotFound(err)
	}
	log.Info("Updated OperatorCondition status", "conditions", len(d.conditions))
	return nil
}

// reportOtherOwners reports objects of other owners once, in the log and as an Event.
func (r *reconciler) reportOtherOwners(ctx context.Context, req reconcile.Request, o input, otherOwners string) {
	if otherOwners == "" {
		r.reported.Delete(req.NamespacedName)
		return
	}
	if before, _ := r.reported.Swap(req.NamespacedName, otherOwners); before == otherOwners {
		return
	}
	logf.FromContext(ctx).Info("Left a foreign object as it is", "problem", otherOwners)
	r.events.Eventf(o.csv, nil, corev1.EventTypeWarning, "OperatorConditionRoleTaken", "GrantConditions", "%s", api.EventNote(otherOwners))
}
