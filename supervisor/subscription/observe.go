package subscription

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// observation is everything that decisions about a namespace are based on.
type observation struct {
	namespace string
	// global is the namespace whose catalogs serve every namespace.
	global string
	// subscriptions are the ones that are not being deleted, oldest first.
	subscriptions []*operatorsv1alpha1.Subscription
	// csvs are the versions of the namespace's own.
	csvs []*operatorsv1alpha1.ClusterServiceVersion
	// plans are the InstallPlans by name.
	plans map[string]*operatorsv1alpha1.InstallPlan
	// catalogs are the ones in scope.
	catalogs map[types.NamespacedName]catalog
	// groups are the OperatorGroups.
	groups groups
	// library knows what the versions say of themselves.
	library *library
	// claims say which package each version belongs to.
	claims claims
	// digests are those of manifests that the snapshots do not tell.
	digests map[manifests]digest
}

// catalog is a CatalogSource and what is known of its catalog.
type catalog struct {
	source *operatorsv1alpha1.CatalogSource
	state  catalogs.State
	// followed is false before the first try to connect, and for a source that
	// cannot be used at all.
	followed bool
}

// observe reads what there is to know about a namespace.
func (r *Reconciler) observe(ctx context.Context, namespace string) (*observation, error) {
	o := &observation{
		namespace: namespace, global: r.global,
		plans:    map[string]*operatorsv1alpha1.InstallPlan{},
		catalogs: map[types.NamespacedName]catalog{},
		library:  &r.library,
		digests:  map[manifests]digest{},
	}
	if err := r.observeSubscriptions(ctx, o); err != nil || len(o.subscriptions) == 0 {
		return o, err
	}
	csvs := &operatorsv1alpha1.ClusterServiceVersionList{}
	if err := r.client.List(ctx, csvs, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing ClusterServiceVersions of namespace %s: %w", namespace, err)
	}
	for i := range csvs.Items {
		if !csvs.Items[i].IsCopied() {
			o.csvs = append(o.csvs, &csvs.Items[i])
		}
	}
	// The cache lists in no order; the same problem is to look the same.
	slices.SortFunc(o.csvs, func(a, b *operatorsv1alpha1.ClusterServiceVersion) int { return cmp.Compare(a.Name, b.Name) })
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := r.client.List(ctx, plans, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing InstallPlans of namespace %s: %w", namespace, err)
	}
	for i := range plans.Items {
		o.plans[plans.Items[i].Name] = &plans.Items[i]
	}
	if err := r.observeGroups(ctx, o); err != nil {
		return nil, err
	}
	if err := r.observeCatalogs(ctx, o); err != nil {
		return nil, err
	}
	o.library.keep(namespace, o.csvs)
	return o, nil
}

func (r *Reconciler) observeSubscriptions(ctx context.Context, o *observation) error {
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := r.client.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
		return fmt.Errorf("listing Subscriptions of namespace %s: %w", o.namespace, err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() && list.Items[i].Spec != nil {
			o.subscriptions = append(o.subscriptions, &list.Items[i])
		}
	}
	slices.SortFunc(o.subscriptions, func(a, b *operatorsv1alpha1.Subscription) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// observeCatalogs reads the catalogs of the namespace and, unless its
// OperatorGroup excludes that one, of the global one.
func (r *Reconciler) observeCatalogs(ctx context.Context, o *observation) error {
	scope := []string{o.namespace}
	if o.global != o.namespace && !o.groups.excludesGlobal {
		scope = append(scope, o.global)
	}
	for _, namespace := range scope {
		list := catalogs.NewList()
		if err := r.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing CatalogSources of namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			source, err := catalogs.Decode(&list.Items[i])
			if err != nil {
				// One that cannot be read is as good as missing; the others are not
				// to suffer.
				log.FromContext(ctx).Error(err, "Leaving out a catalog")
				continue
			}
			key := client.ObjectKeyFromObject(source)
			state, followed := r.catalogs.State(key)
			o.catalogs[key] = catalog{source: source, state: state, followed: followed}
		}
	}
	return nil
}

// problem puts an observation into the resolver's terms.
func (o *observation) problem(decisions []*decision) resolver.Problem {
	p := resolver.Problem{Namespace: o.namespace, Catalogs: map[resolver.CatalogKey]resolver.Catalog{}}
	for key, c := range o.catalogs {
		p.Catalogs[resolver.CatalogKey{Namespace: key.Namespace, Name: key.Name}] = offer(c)
	}
	p.Operators = o.operators()
	for _, d := range decisions {
		if d.err == nil {
			p.Subscriptions = append(p.Subscriptions, o.wish(d))
		}
	}
	return p
}

// operators are the versions that none of their package takes over from: what is
// on its way out is nothing to go by.
func (o *observation) operators() []resolver.Operator {
	var list []resolver.Operator
	for _, csv := range tips(o.csvs) {
		f := o.library.read(csv)
		if f.subject.Package == "" {
			f.subject.Package = o.claims.packages[csv.Name]
		}
		list = append(list, resolver.Operator{Name: csv.Name, Subject: f.subject, Requires: f.requires})
	}
	return list
}

// wish puts a Subscription into the resolver's terms.
func (o *observation) wish(d *decision) resolver.Subscription {
	sub := d.subscription
	w := resolver.Subscription{
		Name:        sub.Name,
		Catalog:     resolver.CatalogKey{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource},
		Package:     sub.Spec.Package,
		Channel:     sub.Spec.Channel,
		StartingCSV: sub.Spec.StartingCSV,
		Generated:   generatedBy(sub) != "",
		Holds:       o.holds(sub, d.present),
		Before:      o.before(sub, d.present),
		Frozen:      !o.free(d),
	}
	if d.present.current != nil {
		w.Installed = d.present.current.Name
	}
	return w
}

// generatedBy names the plan that made a Subscription for a package that an
// operator needs; empty for a Subscription that a user made.
func generatedBy(sub *operatorsv1alpha1.Subscription) string {
	return sub.Annotations[plan.AnnotationGeneratedBy]
}

// offer gives what can be resolved against: the last good snapshot, whether
// or not the catalog is there now.
func offer(c catalog) resolver.Catalog {
	from := resolver.Catalog{Priority: c.source.Spec.Priority}
	_, problem := catalogs.SpecProblem(c.source)
	switch {
	case c.state.Snapshot != nil:
		from.Content = c.state.Snapshot.Content
	case problem != "":
		from.Err = fmt.Errorf("%w: %s", catalogs.ErrNotConnected, problem)
	case c.state.Err != nil:
		from.Err = c.state.Err
	case c.followed && c.state.Connectivity == connectivity.TransientFailure.String():
		from.Err = fmt.Errorf("%w: nothing answers at %s", catalogs.ErrNotConnected, c.state.Address)
	default:
		from.Pending = true
	}
	return from
}
