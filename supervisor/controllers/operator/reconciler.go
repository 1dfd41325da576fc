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
)

const (
	// conflictDelay is the pause after a write that met a newer object, long enough for
	// the cache to have seen it.
	conflictDelay = 50 * time.Millisecond
	// gatheringTime is how long after an event an Operator is read, and settlingTime for how long it
	// is left alone after it was written: an installation makes and changes dozens of components, one
	// after the other, and not each is worth a write.
	gatheringTime = time.Second
	settlingTime  = 5 * time.Second
)

// operatorReconciler keeps the Operators.
type operatorReconciler struct {
	*gatherer

	client client.Client
	clock  clock.PassiveClock
	wrote  sync.Map // by name, when an Operator was written last
}

// Reconcile brings one Operator up to date with its components.
func (r *operatorReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if len(validation.IsQualifiedName(api.PrefixComponent+req.Name)) > 0 {
		// Somebody has made an Operator whose label nothing can bear.
		return ctrl.Result{}, nil
	}
	if wait := r.settling(req.Name); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	refs, err := r.gather(ctx, req.Name)
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
		// What somebody else wrote is on its way here.
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, err
}

// settling says for how long an Operator is left as it is. That it was written is
// forgotten when it no longer counts.
func (r *operatorReconciler) settling(name string) time.Duration {
	at, written := r.wrote.Load(name)
	if !written {
		return 0
	}
	last, _ := at.(time.Time)
	wait := settlingTime - r.clock.Since(last)
	if wait <= 0 {
		r.wrote.Delete(name)
	}
	return wait
}

func (r *operatorReconciler) act(ctx context.Context, name string, have *operatorsv1.Operator, do action, want operatorsv1.OperatorStatus) error {
	log := logf.FromContext(ctx)
	switch do {
	case rest:
		return nil
	case remove:
		log.Info("Deleting an Operator that has no components any more")
		return r.remove(ctx, have)
	case create:
		var err error
		if have, err = r.make(ctx, name); err != nil {
			return err
		}
	case show:
	}
	if err := r.show(ctx, have, want); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.wrote.Store(name, r.clock.Now())
	log.Info("Updated Operator status", "components", len(want.Components.Refs), "created", do == create)
	return nil
}
