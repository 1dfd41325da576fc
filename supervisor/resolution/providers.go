package resolution

import (
	"cmp"
	"math"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// providers finds the versions that meet constraints: present operators, and entries of catalogs.
type providers struct {
	catalogs map[CatalogKey]Catalog
	// ranked are all catalogs, independently of a dependent.
	ranked    []CatalogKey
	operators *operators
	evaluator *evaluator
	// cache holds the results of entries.
	cache map[providerQuery][]*content.Entry
	// offChain are candidates of Subscriptions that are not on the chain of their channel.
	offChain map[CatalogKey][]*content.Entry
}

// providerQuery is a constraint on the entries of a catalog.
type providerQuery struct {
	catalog    CatalogKey
	constraint *constraint.Constraint
}

// providerList holds the possible providers for a constraint.
type providerList struct {
	// nodes are in order of preference.
	nodes []node
	// certain is the number of nodes that are preferred to anything in a catalog that is still being read. It exceeds
	// their number if there is no such catalog.
	certain int
}

func newProviders(in *Input, ops *operators, e *evaluator) *providers {
	return &providers{
		catalogs: in.Catalogs, ranked: in.rank(), operators: ops, evaluator: e,
		cache: map[providerQuery][]*content.Entry{}, offChain: map[CatalogKey][]*content.Entry{},
	}
}

// find returns the possible providers for a constraint of a bundle from a catalog. Present operators come
// first, then the entries of the bundle's own catalog, then those of the others.
func (p *providers) find(dependent CatalogKey, c *constraint.Constraint) providerList {
	found := providerList{certain: math.MaxInt}
	for i := range p.operators.all {
		if o := &p.operators.all[i]; p.evaluator.met(c, &o.Subject) {
			found.nodes = append(found.nodes, node{operator: o})
		}
	}
	for _, key := range p.rankedFor(dependent) {
		if p.catalogs[key].Pending {
			found.certain = min(found.certain, len(found.nodes))
			continue
		}
		for _, e := range p.entries(key, c) {
			found.nodes = append(found.nodes, node{catalog: key, entry: e})
		}
	}
	return found
}

// pending reports whether a catalog is being read for the first time.
func (p *providers) pending() bool {
	for _, c := range p.catalogs {
		if c.Pending {
			return true
		}
	}
	return false
}

// include makes candidates of a Subscription available as providers even if they are not on their channel's chain.
func (p *providers) include(key CatalogKey, candidates []*content.Entry) {
	for _, e := range candidates {
		if e.Position < 0 && !slices.Contains(p.offChain[key], e) {
			p.offChain[key] = append(p.offChain[key], e)
		}
	}
}

// entries returns the entries of a catalog that meet a constraint, in order of preference. It omits entries that
// are not on their channel's chain, since they are skipped or have no known position. Entries that a
// Subscription requests by name are included.
func (p *providers) entries(key CatalogKey, c *constraint.Constraint) []*content.Entry {
	catalog := p.catalogs[key].Content
	if catalog == nil {
		return nil
	}
	q := providerQuery{catalog: key, constraint: c}
	if known, ok := p.cache[q]; ok {
		return known
	}
	var found []*content.Entry
	for _, e := range entriesForConstraint(catalog, c) {
		if e.Position >= 0 && e.Bundle.Err == nil && p.evaluator.met(c, &e.Bundle.Subject) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b *content.Entry) int {
		return cmp.Or(
			trueFirst(isDefault(a.Channel), isDefault(b.Channel)),
			cmp.Compare(a.Channel.Package.Name, b.Channel.Package.Name),
			cmp.Compare(a.Channel.Name, b.Channel.Name),
			cmp.Compare(a.Position, b.Position))
	})
	found = slices.Compact(found)
	for _, e := range p.offChain[key] {
		if e.Bundle.Err == nil && p.evaluator.met(c, &e.Bundle.Subject) {
			found = append(found, e)
		}
	}
	p.cache[q] = found
	return found
}
