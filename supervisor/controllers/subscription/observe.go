package subscription

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// namespaceState holds the objects that decisions about a namespace depend on. It is never modified.
type namespaceState struct {
	namespace string
	// global is the namespace whose catalogs serve every namespace.
	global string
	// subscriptions are those that are not being deleted, oldest first.
	subscriptions []*operatorsv1alpha1.Subscription
	// deleting are those that are being deleted and wait for the removal of their operators.
	deleting []*operatorsv1alpha1.Subscription
	// versions are the ClusterServiceVersions of the namespace, without copies.
	versions []*operatorsv1alpha1.ClusterServiceVersion
	plans    planSet
	catalogs catalogSet
	groups   groups
	// properties caches the properties of the versions.
	properties *propertyCache
	// unrecorded holds the phases of plans that transition logs may lack, by UID.
	unrecorded map[types.UID][]operatorsv1alpha1.InstallPlanPhase
}

// withSubscriptions returns the state with other Subscriptions.
func (o *namespaceState) withSubscriptions(subs []*operatorsv1alpha1.Subscription) *namespaceState {
	next := *o
	next.subscriptions = subs
	return &next
}

// withPlans returns the state with other plans.
func (o *namespaceState) withPlans(plans planSet) *namespaceState {
	next := *o
	next.plans = plans
	return &next
}

// observer reads the objects of namespaces.
type observer struct {
	client     client.Reader
	cache      client.Reader
	catalogs   catalogStore
	tracker    *tracker
	properties propertyCache
	// global is the namespace whose catalogs serve every namespace.
	global string
}

// observe reads the objects of a namespace.
func (r *observer) observe(ctx context.Context, namespace string) (*namespaceState, error) {
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
	if !slices.ContainsFunc(objects.Subscriptions, active) && !slices.ContainsFunc(objects.Subscriptions, awaitsUninstall) {
		return objects.observe(&r.properties), nil
	}
	found, err := r.observeCatalogs(ctx, namespace)
	err = errors.Join(
		r.list(ctx, "ClusterServiceVersions", namespace, &versions),
		r.list(ctx, "InstallPlans", namespace, &plans),
		r.list(ctx, "OperatorGroups", namespace, &groups),
		err,
	)
	if err != nil {
		return nil, err
	}
	objects.Versions, objects.Plans, objects.Groups, objects.Catalogs = pointers(versions.Items), pointers(plans.Items), pointers(groups.Items), found
	o := objects.observe(&r.properties)
	r.properties.retain(namespace, o.versions)
	o.unrecorded = unrecordedPhases(o.subscriptions, r.tracker.since)
	return o, nil
}

func (r *observer) list(ctx context.Context, kinds, namespace string, into client.ObjectList) error {
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

// observeCatalogs reads the catalogs of a namespace and of the global one.
func (r *observer) observeCatalogs(ctx context.Context, namespace string) ([]Catalog, error) {
	var found []Catalog
	for _, namespace := range slices.Compact([]string{namespace, r.global}) {
		list := catalogs.NewList()
		if err := r.cache.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing CatalogSources of namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			source, err := catalogs.Decode(&list.Items[i])
			if err != nil {
				// An unreadable catalog counts as missing, and does not affect the others.
				log.FromContext(ctx).Error(err, "Leaving out a catalog")
				continue
			}
			state, followed := r.catalogs.State(client.ObjectKeyFromObject(source))
			found = append(found, Catalog{Source: source, State: state, Followed: followed})
		}
	}
	return found, nil
}
