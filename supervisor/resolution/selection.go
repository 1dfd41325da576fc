package resolution

import (
	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// selection returns the entries of a catalog that may meet a constraint. It uses the indexes of the catalog if
// the constraint names an indexed property. Every entry that meets the constraint is included, once.
func selection(catalog *content.Catalog, c *constraint.Constraint) []*content.Entry {
	s := selected{lists: map[list]bool{}, entries: map[*content.Entry]bool{}}
	switch {
	case !selective(c):
		for _, pkg := range catalog.Packages() {
			s.add(ofPackage(pkg))
		}
	default:
		s.follow(catalog, c)
	}
	return s.order
}

// list identifies one of the lists of a catalog.
type list struct {
	gvk        bundles.GVK
	pkg, label string
}

// selected collects entries from several lists.
type selected struct {
	lists   map[list]bool
	entries map[*content.Entry]bool
	order   []*content.Entry
}

func (s *selected) add(entries []*content.Entry) {
	for _, e := range entries {
		if !s.entries[e] {
			s.entries[e] = true
			s.order = append(s.order, e)
		}
	}
}

// first reports whether a list is read for the first time.
func (s *selected) first(l list) bool {
	known := s.lists[l]
	s.lists[l] = true
	return !known
}

// follow adds the entries that a selective constraint names.
func (s *selected) follow(catalog *content.Catalog, c *constraint.Constraint) {
	switch {
	case c.GVK != nil:
		if s.first(list{gvk: *c.GVK}) {
			s.add(catalog.Providing(*c.GVK))
		}
	case c.Package != nil:
		if s.first(list{pkg: c.Package.Name}) {
			s.add(ofPackage(catalog.Package(c.Package.Name)))
		}
	case c.Label != "":
		if s.first(list{label: c.Label}) {
			s.add(catalog.Labelled(c.Label))
		}
	case len(c.Any) > 0:
		for i := range c.Any {
			s.follow(catalog, &c.Any[i])
		}
	default:
		for i := range c.All {
			if selective(&c.All[i]) {
				s.follow(catalog, &c.All[i])
				return
			}
		}
	}
}

// selective reports whether a constraint names an indexed property.
func selective(c *constraint.Constraint) bool {
	switch {
	case c.GVK != nil, c.Package != nil, c.Label != "":
		return true
	case len(c.Any) > 0:
		for i := range c.Any {
			if !selective(&c.Any[i]) {
				return false
			}
		}
		return true
	}
	for i := range c.All {
		if selective(&c.All[i]) {
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
