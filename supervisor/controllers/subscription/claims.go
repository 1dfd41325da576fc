package subscription

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// claims say which package each version of a namespace belongs to.
type claims struct {
	// packages are those of the versions, by name; a version that is not here
	// belongs to nobody.
	packages map[string]string
	// open are the versions that might belong to a Subscription, by its name, but
	// might belong to another or stand beside each other.
	open map[string]*unclaimed
}

// unclaimed is what keeps a Subscription from taking over what is there.
type unclaimed struct {
	versions []string
	// rivals are the Subscriptions that the versions might belong to.
	rivals []string
}

// belonging is a wish that a version may have come from.
type belonging struct {
	catalog types.NamespacedName
	pkg     string
}

// claim finds out which package each version belongs to: the one that it names
// itself, or that of the Subscription which knows it. A version that has neither
// is adopted: by the record of where it came from, or else when there is a single
// wish that it can have come from and nothing else is there of that package.
func (o *observation) claim() claims {
	c := claims{packages: map[string]string{}, open: map[string]*unclaimed{}}
	var foundlings []*operatorsv1alpha1.ClusterServiceVersion
	for _, csv := range o.csvs {
		pkg := o.library.read(csv).subject.Package
		for _, sub := range o.subscriptions {
			if pkg == "" && (csv.Name == sub.Status.CurrentCSV || csv.Name == sub.Status.InstalledCSV) {
				pkg = sub.Spec.Package
			}
		}
		if pkg == "" {
			foundlings = append(foundlings, csv)
			continue
		}
		c.packages[csv.Name] = pkg
	}
	o.adopt(&c, foundlings)
	return c
}

// adopt gives versions that nobody claims to those which they must have come
// from.
func (o *observation) adopt(c *claims, foundlings []*operatorsv1alpha1.ClusterServiceVersion) {
	matches := map[belonging][]*operatorsv1alpha1.ClusterServiceVersion{}
	var order []belonging
	for _, csv := range foundlings {
		possible := o.origins(csv)
		if len(possible) > 1 {
			o.leaveOpen(c, []*operatorsv1alpha1.ClusterServiceVersion{csv}, possible)
		}
		if len(possible) != 1 {
			continue
		}
		if matches[possible[0]] == nil {
			order = append(order, possible[0])
		}
		matches[possible[0]] = append(matches[possible[0]], csv)
	}
	for _, b := range order {
		if others := o.of(*c, b.pkg); len(tips(slices.Concat(others, matches[b]))) > 1 {
			o.leaveOpen(c, matches[b], []belonging{b})
			continue
		}
		for _, csv := range matches[b] {
			c.packages[csv.Name] = b.pkg
		}
	}
}

// wishOf gives what a Subscription asks for, as far as versions can have come
// from it.
func wishOf(sub *operatorsv1alpha1.Subscription) belonging {
	return belonging{catalog: types.NamespacedName{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}, pkg: sub.Spec.Package}
}

// origins gives the wishes that a version may have come from: those whose package
// has a version of that name. Those that the version's own record speaks for
// come before all others.
func (o *observation) origins(csv *operatorsv1alpha1.ClusterServiceVersion) []belonging {
	var all, recorded []belonging
	for _, sub := range o.subscriptions {
		b := wishOf(sub)
		if !o.has(b, csv.Name) {
			continue
		}
		all = append(all, b)
		channel := sub.Spec.Channel == "" || sub.Spec.Channel == csv.Annotations[api.AnnotationChannel]
		if channel && csv.Annotations[api.AnnotationCatalog] == b.catalog.String() {
			recorded = append(recorded, b)
		}
	}
	all, recorded = unique(all), unique(recorded)
	if len(recorded) == 0 {
		return all
	}
	digest := csv.Annotations[api.AnnotationBundleDigest]
	same := slices.DeleteFunc(slices.Clone(recorded), func(b belonging) bool {
		return digest == "" || o.catalogs[b.catalog].State.Snapshot.Manifests(b.pkg, csv.Name) != digest
	})
	if len(same) == 1 {
		return same
	}
	return recorded
}

// has says whether a catalog has a version in a package.
func (o *observation) has(b belonging, version string) bool {
	snapshot := o.catalogs[b.catalog].State.Snapshot
	if snapshot == nil {
		return false
	}
	pkg := snapshot.Content.Package(b.pkg)
	return pkg != nil && pkg.Bundle(version) != nil
}

// unique drops repetitions.
func unique(list []belonging) []belonging {
	var once []belonging
	for _, b := range list {
		if !slices.Contains(once, b) {
			once = append(once, b)
		}
	}
	return once
}

// leaveOpen records, for every Subscription with one of some wishes, that there
// are versions which it might have but does not get.
func (o *observation) leaveOpen(c *claims, csvs []*operatorsv1alpha1.ClusterServiceVersion, possible []belonging) {
	var names, rivals []string
	for _, csv := range csvs {
		names = append(names, csv.Name)
	}
	for _, sub := range o.subscriptions {
		if slices.Contains(possible, wishOf(sub)) {
			rivals = append(rivals, sub.Name)
		}
	}
	for _, name := range rivals {
		if c.open[name] == nil {
			c.open[name] = &unclaimed{}
		}
		u := c.open[name]
		u.versions = append(u.versions, names...)
		for _, rival := range rivals {
			if !slices.Contains(u.rivals, rival) {
				u.rivals = append(u.rivals, rival)
			}
		}
	}
}

// of gives the versions of a package.
func (o *observation) of(c claims, pkg string) []*operatorsv1alpha1.ClusterServiceVersion {
	var found []*operatorsv1alpha1.ClusterServiceVersion
	for _, csv := range o.csvs {
		if c.packages[csv.Name] == pkg {
			found = append(found, csv)
		}
	}
	return found
}

// error says which versions stand in the way of a Subscription and what to do.
func (u *unclaimed) error(sub *operatorsv1alpha1.Subscription) error {
	slices.Sort(u.versions)
	e := &resolver.UnsatisfiableError{Reason: api.ReasonVersionUnclaimed}
	for _, name := range u.versions {
		e.Reasons = append(e.Reasons, fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", name))
	}
	e.Reasons = append(e.Reasons, fmt.Sprintf("subscription %s exists", sub.Name))
	list := strings.Join(u.versions, ", ")
	if len(u.rivals) > 1 {
		e.Remedy = fmt.Sprintf("%s can belong to any of the subscriptions %s; delete those that it does not belong to, or name its package in its annotation %s, and it is taken over",
			list, strings.Join(u.rivals, ", "), api.AnnotationProperties)
		return e
	}
	e.Remedy = fmt.Sprintf("of package %s there can be only one operator; delete the clusterserviceversions that are not in use, and the one that is left of %s is taken over", sub.Spec.Package, list)
	return e
}
