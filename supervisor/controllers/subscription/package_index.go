package subscription

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// packageIndex assigns the versions of a namespace to packages.
type packageIndex struct {
	// packages are the packages of the versions, by the name of the version. Orphans are missing.
	packages map[string]string
	// ambiguous are the orphans that may belong to a Subscription, by its name. They may also belong
	// to another one, or exclude each other.
	ambiguous map[string]*ambiguity
}

// ambiguity holds the orphans that prevent a Subscription from adopting a version.
type ambiguity struct {
	versions []string
	// candidates are the Subscriptions that the versions may belong to.
	candidates []string
}

// newPackageIndex returns the package of each version: the one that the version records, or the one of
// the Subscription whose status names it. Other versions are orphans.
func newPackageIndex(o *namespaceState) packageIndex {
	c := packageIndex{packages: map[string]string{}, ambiguous: map[string]*ambiguity{}}
	var orphans []*operatorsv1alpha1.ClusterServiceVersion
	for _, csv := range o.versions {
		pkg := o.properties.read(csv).subject.Package
		for _, sub := range o.subscriptions {
			if pkg == "" && (csv.Name == sub.Status.CurrentCSV || csv.Name == sub.Status.InstalledCSV) {
				pkg = sub.Spec.Package
			}
		}
		if pkg == "" {
			orphans = append(orphans, csv)
			continue
		}
		c.packages[csv.Name] = pkg
	}
	c.adopt(o, orphans)
	return c
}

// adopt assigns each orphan to its only possible origin, if the package then has a single newest
// version. The orphan's record of its origin takes precedence.
func (c *packageIndex) adopt(o *namespaceState, orphans []*operatorsv1alpha1.ClusterServiceVersion) {
	matches := map[origin][]*operatorsv1alpha1.ClusterServiceVersion{}
	var order []origin
	for _, csv := range orphans {
		possible := origins(o, csv)
		if len(possible) > 1 {
			c.markAmbiguous(o.subscriptions, []*operatorsv1alpha1.ClusterServiceVersion{csv}, possible)
		}
		if len(possible) != 1 {
			continue
		}
		if matches[possible[0]] == nil {
			order = append(order, possible[0])
		}
		matches[possible[0]] = append(matches[possible[0]], csv)
	}
	for _, from := range order {
		if others := c.versionsOf(o.versions, from.pkg); len(unreplaced(slices.Concat(others, matches[from]))) > 1 {
			c.markAmbiguous(o.subscriptions, matches[from], []origin{from})
			continue
		}
		for _, csv := range matches[from] {
			c.packages[csv.Name] = from.pkg
		}
	}
}

// origins returns what Subscriptions name and a version may have come from: the package has a
// version of that name. Those in the catalog that the version records take precedence.
func origins(o *namespaceState, csv *operatorsv1alpha1.ClusterServiceVersion) []origin {
	var all, recorded []origin
	for _, sub := range o.subscriptions {
		from := originOf(sub)
		if !o.catalogs.has(from, csv.Name) {
			continue
		}
		all = append(all, from)
		if catalog, _ := api.RecordedCatalog(csv); catalog == from.catalog {
			recorded = append(recorded, from)
		}
	}
	all, recorded = unique(all), unique(recorded)
	if len(recorded) == 0 {
		return all
	}
	return recorded
}

// unique removes repetitions.
func unique(list []origin) []origin {
	var once []origin
	for _, from := range list {
		if !slices.Contains(once, from) {
			once = append(once, from)
		}
	}
	return once
}

// markAmbiguous records orphans for every Subscription that names one of their possible origins.
func (c *packageIndex) markAmbiguous(subs []*operatorsv1alpha1.Subscription, csvs []*operatorsv1alpha1.ClusterServiceVersion, possible []origin) {
	var names, candidates []string
	for _, csv := range csvs {
		names = append(names, csv.Name)
	}
	for _, sub := range subs {
		if slices.Contains(possible, originOf(sub)) {
			candidates = append(candidates, sub.Name)
		}
	}
	for _, name := range candidates {
		if c.ambiguous[name] == nil {
			c.ambiguous[name] = &ambiguity{}
		}
		a := c.ambiguous[name]
		a.versions = append(a.versions, names...)
		for _, other := range candidates {
			if !slices.Contains(a.candidates, other) {
				a.candidates = append(a.candidates, other)
			}
		}
	}
}

// versionsOf returns the versions of a package.
func (c *packageIndex) versionsOf(csvs []*operatorsv1alpha1.ClusterServiceVersion, pkg string) []*operatorsv1alpha1.ClusterServiceVersion {
	var found []*operatorsv1alpha1.ClusterServiceVersion
	for _, csv := range csvs {
		if c.packages[csv.Name] == pkg {
			found = append(found, csv)
		}
	}
	return found
}

// error returns the orphans that a Subscription cannot adopt, and what to do.
func (a *ambiguity) error(sub *operatorsv1alpha1.Subscription) error {
	slices.Sort(a.versions)
	e := &resolution.UnsatisfiableError{Reason: api.ReasonVersionAmbiguous}
	for _, name := range a.versions {
		e.Reasons = append(e.Reasons, olmtext.VersionUnreferenced(name))
	}
	e.Reasons = append(e.Reasons, olmtext.SubscriptionExists(sub.Name))
	list := strings.Join(a.versions, ", ")
	if len(a.candidates) > 1 {
		e.Remedy = fmt.Sprintf("%s can belong to any of the subscriptions %s; delete all but one of them, or name its package in its annotation %s; the supervisor then adopts it",
			list, strings.Join(a.candidates, ", "), api.AnnotationProperties)
		return e
	}
	e.Remedy = fmt.Sprintf("%s; delete the unused clusterserviceversions among %s; the supervisor then adopts the remaining one", olmtext.OnePerPackage(sub.Spec.Package), list)
	return e
}
