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

// Objects are what decisions about a namespace are based on, as it was read: in any
// order, and with what does not count.
type Objects struct {
	Namespace string
	// Global is the namespace whose catalogs serve every namespace.
	Global        string
	Subscriptions []*operatorsv1alpha1.Subscription
	Versions      []*operatorsv1alpha1.ClusterServiceVersion
	Plans         []*operatorsv1alpha1.InstallPlan
	Groups        []*operatorsv1.OperatorGroup
	// Catalogs are those of the namespace and those from elsewhere that serve it, if
	// its OperatorGroup lets them.
	Catalogs []Catalog
}

// Catalog is a CatalogSource and what is known of its catalog.
type Catalog struct {
	Source *operatorsv1alpha1.CatalogSource
	State  catalogs.State
	// Followed is false before the first try to connect, and for a source that
	// cannot be used at all.
	Followed bool
}

// Prospect is what the controller asks the resolver about a namespace, and what it
// knows without asking.
type Prospect struct {
	Problem resolver.Problem
	// Blocked is why nothing is resolved in the namespace as it is; nil when
	// something is.
	Blocked error
	// Refused are the errors of the Subscriptions that are not asked about, by name:
	// which version is theirs is open.
	Refused map[string]error
	// Failed are the versions that have failed and that nothing takes over from until
	// they are well, by the name of the Subscription.
	Failed map[string]*operatorsv1alpha1.ClusterServiceVersion
}

// Look says what the controller would ask the resolver, without asking it. It
// neither reads nor changes anything.
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

// observe puts objects in order and leaves out what does not count.
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
	// A cache lists in no order; the same problem is to look the same.
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

// counts says whether a Subscription is to be served.
func counts(sub *operatorsv1alpha1.Subscription) bool {
	return sub.DeletionTimestamp.IsZero() && sub.Spec != nil
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

// operators are the versions that none of their package takes over from, and those
// that are being brought: what is on its way out is nothing to go by.
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

// wish puts a Subscription into the resolver's terms.
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

// generatedBy names the plan that made a Subscription for a package that an
// operator needs; empty for a Subscription that a user made.
func generatedBy(sub *operatorsv1alpha1.Subscription) string {
	return sub.Annotations[api.AnnotationGeneratedBy]
}

// offer gives what can be resolved against: the last good snapshot, whether
// or not the catalog is there now.
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
