package catalogs

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Setup adds the store and a controller to a manager that makes it follow every
// CatalogSource with an address. Both run on standbys too.
func Setup(mgr ctrl.Manager, store *Store) error {
	if err := mgr.Add(store); err != nil {
		return fmt.Errorf("adding the catalog store: %w", err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("catalogs").
		For(NewObject(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		Complete(&follower{reader: mgr.GetCache(), store: store})
	if err != nil {
		return fmt.Errorf("setting up the catalogs controller: %w", err)
	}
	return nil
}

// follower makes the store follow what the CatalogSources say.
type follower struct {
	reader client.Reader
	store  *Store
}

// Reconcile follows or forgets one catalog.
func (f *follower) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	u := NewObject()
	if err := f.reader.Get(ctx, req.NamespacedName, u); err != nil {
		if client.IgnoreNotFound(err) == nil {
			f.store.Remove(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading CatalogSource %s: %w", req, err)
	}
	source, err := Decode(u)
	if err != nil {
		return ctrl.Result{}, err
	}
	if reason, problem := SpecProblem(source); problem != "" {
		log.FromContext(ctx).V(1).Info("Not following catalog", "reason", reason, "problem", problem)
		f.store.Remove(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, f.store.Follow(req.NamespacedName, source.Spec.Address) //nolint:contextcheck // the connection outlives the call
}
