package operator

import (
	"context"
	"fmt"
	"sync"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

const (
	// batchDelay is the pause between an event and the reconciliation of an Operator.
	// minStatusInterval is the minimum pause between two writes of its status. An installation changes
	// dozens of components one after the other, and a write per change would be wasteful.
	batchDelay        = time.Second
	minStatusInterval = 5 * time.Second
)

// operatorReconciler reconciles Operators.
type operatorReconciler struct {
	*observer

	client     client.Client
	clock      clock.PassiveClock
	lastWrites sync.Map // last write of each Operator, by name
}

// Reconcile updates one Operator from its components.
func (r *operatorReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if len(validation.IsQualifiedName(api.PrefixComponent+req.Name)) > 0 {
		// The label of this Operator would not be valid, so no object can have it.
		return ctrl.Result{}, nil
	}
	if wait := r.statusDelay(req.Name); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	refs, err := r.components(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	have := &operatorsv1.Operator{}
	err = r.client.Get(ctx, client.ObjectKey{Name: req.Name}, have)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("getting Operator %s: %w", req.Name, err)
	}
	if err != nil {
		have = nil
	}
	do, want := decide(have, api.PrefixComponent+req.Name, refs)
	err = r.act(ctx, req.Name, have, do, want)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The cache will receive the change of the other client.
		return ctrl.Result{RequeueAfter: apply.ConflictDelay}, nil
	}
	return ctrl.Result{}, err
}

// statusDelay returns how long to wait before the next write of an Operator. It deletes expired
// records.
func (r *operatorReconciler) statusDelay(name string) time.Duration {
	at, written := r.lastWrites.Load(name)
	if !written {
		return 0
	}
	last, _ := at.(time.Time)
	wait := minStatusInterval - r.clock.Since(last)
	if wait <= 0 {
		r.lastWrites.Delete(name)
	}
	return wait
}

func (r *operatorReconciler) act(ctx context.Context, name string, have *operatorsv1.Operator, do action, want operatorsv1.OperatorStatus) error {
	log := logf.FromContext(ctx)
	switch do {
	case actionNone:
		return nil
	case actionDelete:
		log.Info("Deleting an Operator without components")
		return r.deleteOperator(ctx, have)
	case actionCreate:
		var err error
		if have, err = r.createOperator(ctx, name); err != nil {
			return err
		}
	case actionUpdateStatus:
	}
	if err := r.updateStatus(ctx, have, want); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.lastWrites.Store(name, r.clock.Now())
	log.Info("Updated Operator status", "components", len(want.Components.Refs), "created", do == actionCreate)
	return nil
}
