package resolver

import (
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// selection narrows a catalog down to the entries that may meet a constraint, by
// the catalog's own lists where the constraint names something they are by. Every
// entry that meets it is among them.
func selection(catalog *content.Catalog, c *constraint.Constraint) []*content.Entry {
	switch {
	case c.GVK != nil:
		return catalog.Providing(*c.GVK)
	case c.Package != nil:
		return ofPackage(catalog.Package(c.Package.Name))
	case c.Label != "":
		return catalog.Labelled(c.Label)
	case len(c.Any) > 0:
		var all []*content.Entry
		for i := range c.Any {
			all = append(all, selection(catalog, &c.Any[i])...)
		}
		return all
	case len(c.All) > 0:
		for i := range c.All {
			if selective(&c.All[i]) {
				return selection(catalog, &c.All[i])
			}
		}
	}
	return everything(catalog)
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

func everything(catalog *content.Catalog) []*content.Entry {
	var entries []*content.Entry
	for _, pkg := range catalog.Packages() {
		entries = append(entries, ofPackage(pkg)...)
	}
	return entries
}
