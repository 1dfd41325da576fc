package resolver

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// node is a version that may be in the result: a present operator, or an entry of a catalog.
type node struct {
	operator *Operator
	catalog  CatalogKey
	entry    *content.Entry
}

func (n node) name() string {
	if n.operator != nil {
		return n.operator.Name
	}
	return n.entry.Bundle.Name
}

func (n node) subject() *constraint.Subject {
	if n.operator != nil {
		return &n.operator.Subject
	}
	return &n.entry.Bundle.Subject
}

// pkg returns the package of a node; empty for an operator that names none.
func (n node) pkg() string {
	if n.operator != nil {
		return n.operator.Subject.Package
	}
	return n.entry.Channel.Package.Name
}

// id returns the name of a node in messages.
func (n node) id(namespace string) string {
	if n.operator != nil {
		return "@existing/" + namespace + "//" + n.operator.Name
	}
	return n.catalog.Name + "/" + n.catalog.Namespace + "/" + n.entry.Channel.Name + "/" + n.entry.Bundle.Name
}

// version returns the version of an operator; zero for nil and for an unknown version.
func (o *Operator) version() semver.Version {
	if o == nil {
		return semver.Version{}
	}
	return o.Subject.Version
}

// provision holds the possible providers for a constraint.
type provision struct {
	// nodes are in order of preference.
	nodes []node
	// certain is the number of nodes that are preferred to anything in a catalog that is still being read. It exceeds
	// their number if there is no such catalog.
	certain int
}

// providers returns the possible providers for a constraint of a bundle from a catalog. Present operators come
// first, then the entries of the bundle's own catalog, then those of the others.
func (r *resolution) providers(dependent CatalogKey, c *constraint.Constraint) provision {
	p := provision{certain: math.MaxInt}
	for i := range r.Operators {
		if r.met(c, &r.Operators[i].Subject) {
			p.nodes = append(p.nodes, node{operator: &r.Operators[i]})
		}
	}
	for _, key := range r.ranked(dependent) {
		if r.Catalogs[key].Pending {
			p.certain = min(p.certain, len(p.nodes))
			continue
		}
		for _, e := range r.offers(key, c) {
			p.nodes = append(p.nodes, node{catalog: key, entry: e})
		}
	}
	return p
}

// ranked returns the catalogs in order of preference for the dependencies of a bundle. Its own catalog comes
// first. The others are ordered by priority, then the own namespace before the global one, then by name.
func (r *resolution) ranked(dependent CatalogKey) []CatalogKey {
	ranked := slices.Clone(r.catalogs)
	slices.SortStableFunc(ranked, func(a, b CatalogKey) int { return first(a == dependent, b == dependent) })
	return ranked
}

// rank returns all catalogs in order, independently of a bundle.
func (p *Problem) rank() []CatalogKey {
	keys := make([]CatalogKey, 0, len(p.Catalogs))
	for key := range p.Catalogs {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b CatalogKey) int {
		return cmp.Or(
			cmp.Compare(p.Catalogs[b].Priority, p.Catalogs[a].Priority),
			first(a.Namespace == p.Namespace, b.Namespace == p.Namespace),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return keys
}

// met reports whether an operator alone meets a constraint. An evaluation that takes too long is cut off, and
// cutOff reports that.
func (r *resolution) met(c *constraint.Constraint, s *constraint.Subject) bool {
	return r.budget.Ask(c, s) == constraint.Met
}

// cutOff returns a message if the evaluation of a constraint takes too long, so that its providers are unknown;
// empty otherwise.
func (r *resolution) cutOff(why *reason) string {
	if !r.budget.CutOff(why.constraint) {
		return ""
	}
	return fmt.Sprintf("property %s of %s takes too long to evaluate, so that not every operator was looked at; ask the publisher of the catalog for a simpler rule, or choose another channel or startingCSV",
		bundles.TypeConstraint, why.node.name())
}

// offer is the key of a query to a catalog.
type offer struct {
	catalog    CatalogKey
	constraint *constraint.Constraint
}

// offers returns the entries of a catalog that meet a constraint, in order of preference. It omits entries that
// are not on their channel's chain, since they are skipped or have no known position. Entries that a
// Subscription requests by name are included.
func (r *resolution) offers(key CatalogKey, c *constraint.Constraint) []*content.Entry {
	catalog := r.Catalogs[key].Content
	if catalog == nil {
		return nil
	}
	asked := offer{catalog: key, constraint: c}
	if known, ok := r.asked[asked]; ok {
		return known
	}
	var found []*content.Entry
	for _, e := range selection(catalog, c) {
		if e.Place >= 0 && e.Bundle.Err == nil && r.met(c, &e.Bundle.Subject) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b *content.Entry) int {
		return cmp.Or(
			first(isDefault(a.Channel), isDefault(b.Channel)),
			cmp.Compare(a.Channel.Package.Name, b.Channel.Package.Name),
			cmp.Compare(a.Channel.Name, b.Channel.Name),
			cmp.Compare(a.Place, b.Place))
	})
	found = slices.Compact(found)
	for _, e := range r.offChain[key] {
		if e.Bundle.Err == nil && r.met(c, &e.Bundle.Subject) {
			found = append(found, e)
		}
	}
	r.asked[asked] = found
	return found
}
