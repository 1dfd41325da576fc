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
	// minStatusInterval is the minimum pause between two reconciliations, if the first one wrote the
	// status. An installation changes dozens of components one after the other, and a write per change
	// would be wasteful. Clients expect the status to be right after two seconds.
	batchDelay        = 500 * time.Millisecond
	minStatusInterval = 1500 * time.Millisecond
)

// reconciler reconciles Operators.
type reconciler struct {
	*observer

	client client.Client
	clock  clock.PassiveClock
	// starts holds the start of each Operator's last reconciliation by name, unless it wrote nothing.
	starts sync.Map
}

// Reconcile updates one Operator from its components.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if len(validation.IsQualifiedName(api.PrefixComponent+req.Name)) > 0 {
		// The label of this Operator would not be valid, so no object can have it.
		return ctrl.Result{}, nil
	}
	r.starts.Store(req.Name, r.clock.Now())
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

// delay returns the pause between an event and the reconciliation of an Operator. It delays the event
// and not the reconciliation, so that all events of the pause need one reconciliation.
func (r *reconciler) delay(name string) time.Duration {
	at, started := r.starts.Load(name)
	if !started {
		return batchDelay
	}
	last, _ := at.(time.Time)
	return max(batchDelay, minStatusInterval-r.clock.Since(last))
}

func (r *reconciler) act(ctx context.Context, name string, have *operatorsv1.Operator, do action, want operatorsv1.OperatorStatus) error {
	log := logf.FromContext(ctx)
	switch do {
	case actionNone:
		r.starts.Delete(name)
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
	log.Info("Updated Operator status", "components", len(want.Components.Refs), "created", do == actionCreate)
	return nil
}
