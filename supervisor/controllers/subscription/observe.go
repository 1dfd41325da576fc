package subscription

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// observation holds everything that decisions about a namespace depend on.
type observation struct {
	namespace string
	// global is the namespace whose catalogs serve every namespace.
	global string
	// subscriptions are those that are not being deleted, oldest first.
	subscriptions []*operatorsv1alpha1.Subscription
	// departures are those that are being deleted and wait for the removal of their operators.
	departures []*operatorsv1alpha1.Subscription
	// csvs are the versions of the namespace, without copies.
	csvs []*operatorsv1alpha1.ClusterServiceVersion
	// plans are the InstallPlans by name.
	plans map[string]*operatorsv1alpha1.InstallPlan
	// catalogs are the catalogs in scope.
	catalogs map[types.NamespacedName]Catalog
	// groups are the OperatorGroups.
	groups groups
	// library caches the facts of the versions.
	library *library
	// claims assign each version to a package.
	claims claims
	// untold holds the phases of plans that transition logs may lack, by UID.
	untold map[types.UID][]operatorsv1alpha1.InstallPlanPhase
	// arrivals are the versions that plans in progress bring.
	arrivals []arrival
	// digests are the digests of manifests that the snapshots lack.
	digests map[manifests]digest
	// upToDate reports that the caches lack no object of the API server.
	upToDate bool
	// again is when to reconcile the namespace again; zero for the next event.
	again time.Time
}

// observe reads the objects of a namespace.
func (r *Reconciler) observe(ctx context.Context, namespace string) (*observation, error) {
	objects := Objects{Namespace: namespace, Global: r.global}
	var (
		subscriptions operatorsv1alpha1.SubscriptionList
		versions      operatorsv1alpha1.ClusterServiceVersionList
		plans         operatorsv1alpha1.InstallPlanList
		groups        operatorsv1.OperatorGroupList
	)
	if err := r.list(ctx, "Subscriptions", namespace, &subscriptions); err != nil {
		return nil, err
	}
	objects.Subscriptions = pointers(subscriptions.Items)
	if !slices.ContainsFunc(objects.Subscriptions, counts) && !slices.ContainsFunc(objects.Subscriptions, departs) {
		return objects.observe(&r.library), nil
	}
	err := errors.Join(
		r.list(ctx, "ClusterServiceVersions", namespace, &versions),
		r.list(ctx, "InstallPlans", namespace, &plans),
		r.list(ctx, "OperatorGroups", namespace, &groups),
		r.observeCatalogs(ctx, &objects),
	)
	if err != nil {
		return nil, err
	}
	objects.Versions, objects.Plans, objects.Groups = pointers(versions.Items), pointers(plans.Items), pointers(groups.Items)
	o := objects.observe(&r.library)
	o.library.keep(namespace, o.csvs)
	o.untold = untold(o.subscriptions, r.tracker.since)
	return o, nil
}

func (r *Reconciler) list(ctx context.Context, kinds, namespace string, into client.ObjectList) error {
	if err := r.client.List(ctx, into, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing %s of namespace %s: %w", kinds, namespace, err)
	}
	return nil
}

func pointers[T any](items []T) []*T {
	list := make([]*T, 0, len(items))
	for i := range items {
		list = append(list, &items[i])
	}
	return list
}

// observeCatalogs reads the catalogs of the namespace and of the global one.
func (r *Reconciler) observeCatalogs(ctx context.Context, objects *Objects) error {
	for _, namespace := range slices.Compact([]string{objects.Namespace, objects.Global}) {
		list := catalogs.NewList()
		if err := r.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing CatalogSources of namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			source, err := catalogs.Decode(&list.Items[i])
			if err != nil {
				// An unreadable catalog counts as missing, and does not affect the others.
				log.FromContext(ctx).Error(err, "Leaving out a catalog")
				continue
			}
			state, followed := r.catalogs.State(client.ObjectKeyFromObject(source))
			objects.Catalogs = append(objects.Catalogs, Catalog{Source: source, State: state, Followed: followed})
		}
	}
	return nil
}
