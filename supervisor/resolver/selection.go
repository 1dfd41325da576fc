package resolver

import (
	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// selection narrows a catalog down to the entries that may meet a constraint, by
// the catalog's own lists where the constraint names something they are by. Every
// entry that meets it is among them, once.
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

// list is one of the lists of a catalog.
type list struct {
	gvk        bundles.GVK
	pkg, label string
}

// selected are entries from several lists.
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

// first says whether a list is looked at for the first time.
func (s *selected) first(l list) bool {
	known := s.lists[l]
	s.lists[l] = true
	return !known
}

// follow adds what a selective constraint names.
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

// selective says whether a constraint names something that a catalog has lists
// of.
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
