package resolution

import (
	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// entriesForConstraint returns the entries of a catalog that may meet a constraint, each once. It uses the indexes of
// the catalog if the constraint names an indexed property.
func entriesForConstraint(catalog *content.Catalog, c *constraint.Constraint) []*content.Entry {
	s := entrySet{seen: map[indexKey]bool{}, entries: map[*content.Entry]bool{}}
	switch {
	case !isIndexed(c):
		for _, pkg := range catalog.Packages() {
			s.add(ofPackage(pkg))
		}
	default:
		s.addIndexed(catalog, c)
	}
	return s.order
}

// indexKey is a key of one of the indexes of a catalog.
type indexKey struct {
	gvk        bundles.GVK
	pkg, label string
}

// entrySet collects entries from several lists.
type entrySet struct {
	seen    map[indexKey]bool
	entries map[*content.Entry]bool
	order   []*content.Entry
}

func (s *entrySet) add(entries []*content.Entry) {
	for _, e := range entries {
		if !s.entries[e] {
			s.entries[e] = true
			s.order = append(s.order, e)
		}
	}
}

// first reports whether a key is looked up for the first time.
func (s *entrySet) first(key indexKey) bool {
	known := s.seen[key]
	s.seen[key] = true
	return !known
}

// addIndexed adds the entries that an indexed constraint names.
func (s *entrySet) addIndexed(catalog *content.Catalog, c *constraint.Constraint) {
	switch {
	case c.GVK != nil:
		if s.first(indexKey{gvk: *c.GVK}) {
			s.add(catalog.Providing(*c.GVK))
		}
	case c.Package != nil:
		if s.first(indexKey{pkg: c.Package.Name}) {
			s.add(ofPackage(catalog.Package(c.Package.Name)))
		}
	case c.Label != "":
		if s.first(indexKey{label: c.Label}) {
			s.add(catalog.Labelled(c.Label))
		}
	case len(c.Any) > 0:
		for i := range c.Any {
			s.addIndexed(catalog, &c.Any[i])
		}
	default:
		for i := range c.All {
			if isIndexed(&c.All[i]) {
				s.addIndexed(catalog, &c.All[i])
				return
			}
		}
	}
}

// isIndexed reports whether a constraint names an indexed property.
func isIndexed(c *constraint.Constraint) bool {
	switch {
	case c.GVK != nil, c.Package != nil, c.Label != "":
		return true
	case len(c.Any) > 0:
		for i := range c.Any {
			if !isIndexed(&c.Any[i]) {
				return false
			}
		}
		return true
	}
	for i := range c.All {
		if isIndexed(&c.All[i]) {
			return true
		}
	}
	return false
}

func ofPackage(pkg *content.Package) []*content.Entry {
	if pkg == nil {
		return nil
	}
	var entries []*content.Entry
	for _, channel := range pkg.Channels {
		entries = append(entries, channel.Chain...)
	}
	return entries
}
