package resolution

import (
	"cmp"
	"slices"
)

// rankedFor returns the catalogs in order of preference for the dependencies of a bundle. Its own catalog comes
// first. The others are ordered by priority, then the own namespace before the global one, then by name.
func (p *providers) rankedFor(dependent CatalogKey) []CatalogKey {
	ranked := slices.Clone(p.ranked)
	slices.SortStableFunc(ranked, func(a, b CatalogKey) int { return trueFirst(a == dependent, b == dependent) })
	return ranked
}

// rank returns all catalogs in order, independently of a bundle.
func (in *Input) rank() []CatalogKey {
	keys := make([]CatalogKey, 0, len(in.Catalogs))
	for key := range in.Catalogs {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b CatalogKey) int {
		return cmp.Or(
			cmp.Compare(in.Catalogs[b].Priority, in.Catalogs[a].Priority),
			trueFirst(a.Namespace == in.Namespace, b.Namespace == in.Namespace),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return keys
}
