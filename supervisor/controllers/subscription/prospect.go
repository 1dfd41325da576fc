package subscription

import (
	"cmp"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// Objects are the objects that decisions about a namespace depend on, as read from the API: in any
// order and unfiltered.
type Objects struct {
	Namespace string
	// Global is the namespace whose catalogs serve every namespace.
	Global        string
	Subscriptions []*operatorsv1alpha1.Subscription
	Versions      []*operatorsv1alpha1.ClusterServiceVersion
	Plans         []*operatorsv1alpha1.InstallPlan
	Groups        []*operatorsv1.OperatorGroup
	// Catalogs are the catalogs of the namespace and of the global namespace. The latter count only
	// if the OperatorGroup does not exclude them.
	Catalogs []Catalog
}

// Catalog is a CatalogSource and the state of its catalog.
type Catalog struct {
	Source *operatorsv1alpha1.CatalogSource
	State  catalogs.State
	// Followed is false before the first attempt to connect, and for an unusable source.
	Followed bool
}

// Prospect is the problem of a namespace for the resolver, and the results that need no resolution.
type Prospect struct {
	Problem resolver.Problem
	// Blocked is why nothing is resolved in the namespace; nil otherwise.
	Blocked error
	// Refused holds the errors of the Subscriptions that are not resolved, by name: it is open
	// which version they own.
	Refused map[string]error
	// Failed holds the failed versions that no version replaces until they succeed, by the name of
	// the Subscription.
	Failed map[string]*operatorsv1alpha1.ClusterServiceVersion
}

// Look returns what the controller would give the resolver, without a resolution. It neither reads
// nor changes objects.
func Look(objects Objects) Prospect {
	o := objects.observe(&library{})
	decisions := o.begin()
	p := Prospect{
		Problem: o.problem(decisions), Blocked: o.groups.problem(o.namespace),
		Refused: map[string]error{}, Failed: map[string]*operatorsv1alpha1.ClusterServiceVersion{},
	}
	for _, d := range decisions {
		if d.err != nil {
			p.Refused[d.subscription.Name] = d.err
		}
		if d.present.failed() && !o.free(d) {
			p.Failed[d.subscription.Name] = d.present.current
		}
	}
	return p
}

// observe sorts objects and leaves out those that do not count.
func (s *Objects) observe(known *library) *observation {
	o := &observation{
		namespace: s.Namespace, global: s.Global, groups: groupsOf(s.Groups), library: known,
		plans:    map[string]*operatorsv1alpha1.InstallPlan{},
		catalogs: map[types.NamespacedName]Catalog{},
		digests:  map[manifests]digest{},
	}
	o.subscriptions = slices.DeleteFunc(slices.Clone(s.Subscriptions), func(sub *operatorsv1alpha1.Subscription) bool { return !counts(sub) })
	o.departures = slices.DeleteFunc(slices.Clone(s.Subscriptions), func(sub *operatorsv1alpha1.Subscription) bool { return !departs(sub) })
	slices.SortFunc(o.subscriptions, func(a, b *operatorsv1alpha1.Subscription) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	o.csvs = slices.DeleteFunc(slices.Clone(s.Versions), (*operatorsv1alpha1.ClusterServiceVersion).IsCopied)
	// Caches list in no order; equal problems must be equal.
	slices.SortFunc(o.csvs, func(a, b *operatorsv1alpha1.ClusterServiceVersion) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range s.Plans {
		o.plans[p.Name] = o.legible(p)
	}
	for _, c := range s.Catalogs {
		if c.Source.Namespace == s.Namespace || !o.groups.excludesGlobal {
			o.catalogs[client.ObjectKeyFromObject(c.Source)] = c
		}
	}
	return o
}

// counts reports whether a Subscription is served.
func counts(sub *operatorsv1alpha1.Subscription) bool {
	return sub.DeletionTimestamp.IsZero() && sub.Spec != nil
}

// problem returns the problem of a namespace for the resolver.
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

// operators returns the versions that no other version of their package replaces, and those that
// plans bring. Versions that are being replaced do not count.
func (o *observation) operators() []resolver.Operator {
	var list []resolver.Operator
	replaced := map[string]bool{}
	for _, a := range o.arrivals {
		replaced[a.replaces] = true
	}
	for _, csv := range tips(o.csvs) {
		if replaced[csv.Name] {
			continue
		}
		f := o.library.read(csv)
		if f.subject.Package == "" {
			f.subject.Package = o.claims.packages[csv.Name]
		}
		list = append(list, resolver.Operator{Name: csv.Name, Subject: f.subject, Requires: f.requires})
	}
	for _, a := range o.arrivals {
		list = append(list, a.operator)
	}
	return list
}

// wish returns a Subscription for the resolver.
func (o *observation) wish(d *decision) resolver.Subscription {
	sub := d.subscription
	w := resolver.Subscription{
		Name:        sub.Name,
		Catalog:     resolver.CatalogKey{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource},
		Package:     sub.Spec.Package,
		Channel:     sub.Spec.Channel,
		StartingCSV: sub.Spec.StartingCSV,
		Pin:         pinOf(sub),
		Generated:   generatedBy(sub) != "",
		Holds:       o.holds(sub, d.present),
		Before:      o.before(sub, d.present),
		Frozen:      !o.free(d),
	}
	if d.present.current != nil {
		w.Installed = d.present.current.Name
	}
	if d.underWay == nil {
		return w
	}
	for _, a := range o.arrivals {
		if a.operator.Subject.Package == sub.Spec.Package {
			w.Installed, w.Before = a.operator.Name, ""
			w.Holds = w.Holds || servesSubscription(d.underWay, sub)
		}
	}
	return w
}

// generatedBy returns the name of the plan that created a Subscription for a dependency; empty for
// the Subscription of a user.
func generatedBy(sub *operatorsv1alpha1.Subscription) string {
	return sub.Annotations[api.AnnotationGeneratedBy]
}

// offer returns the content of a catalog for the resolver: the last good snapshot, even if the
// catalog is unreachable now.
func offer(c Catalog) resolver.Catalog {
	from := resolver.Catalog{Priority: c.Source.Spec.Priority}
	_, problem := catalogs.SpecProblem(c.Source)
	switch {
	case c.State.Snapshot != nil:
		from.Content = c.State.Snapshot.Content
	case problem != "":
		from.Err = fmt.Errorf("%w: %s", catalogs.ErrNotConnected, problem)
	case c.State.Err != nil:
		from.Err = c.State.Err
	case c.Followed && c.State.Connectivity == connectivity.TransientFailure.String():
		from.Err = fmt.Errorf("%w: nothing answers at %s", catalogs.ErrNotConnected, c.State.Address)
	default:
		from.Pending = true
	}
	return from
}
