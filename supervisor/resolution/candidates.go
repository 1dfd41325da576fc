package resolution

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// finder finds the versions that a Subscription may get next.
type finder struct {
	catalogs  map[CatalogKey]Catalog
	operators *operators
}

// candidates returns the entries that a Subscription may get next, best first. There may be none if a version is
// installed and there is no newer one.
func (f *finder) candidates(sub *Subscription) ([]*content.Entry, error) {
	if sub.Pin != "" {
		return f.pinned(sub)
	}
	pkg, err := f.lookup(sub)
	if err != nil {
		return nil, err
	}
	channels, err := channelsOf(sub, pkg)
	if err != nil {
		return nil, err
	}
	var found []*content.Entry
	for _, channel := range channels {
		found = append(found, f.inChannel(sub, channel)...)
	}
	if len(found) == 0 && sub.Installed == "" {
		return nil, versionNotFound(sub, pkg, channels)
	}
	// A channel without an order is an error, unless a version is requested by its name.
	if err := orderProblem(sub, channels); err != nil && !requestedByName(sub, found) {
		return nil, err
	}
	// An unreadable bundle is an error only if there is no other.
	unreadable := !slices.ContainsFunc(found, func(e *content.Entry) bool { return e.Bundle.Err == nil })
	if unreadable && len(found) > 0 && f.operators.byName[sub.Installed] == nil {
		return nil, unreadableBundle(sub.Catalog, found[0].Bundle)
	}
	return found, nil
}

// unreadableRange returns an error for the first newer version whose skipRange is invalid; nil if there is none.
func (f *finder) unreadableRange(sub *Subscription) error {
	pkg, err := f.lookup(sub)
	if err != nil {
		return nil //nolint:nilerr // candidates returns it
	}
	channels, err := channelsOf(sub, pkg)
	if err != nil {
		return nil //nolint:nilerr // candidates returns it
	}
	for _, channel := range channels {
		for _, e := range channel.Chain {
			if e.Bundle.Name == sub.Installed {
				break
			}
			if e.SkipRange == "" {
				continue
			}
			if _, err := bundles.ParseRange(e.SkipRange); err != nil {
				return invalidSkipRange(sub, e, err)
			}
		}
	}
	return nil
}

// inChannel returns the candidates of a channel.
func (f *finder) inChannel(sub *Subscription, channel *content.Channel) []*content.Entry {
	switch {
	case sub.Installed != "":
		version := f.operators.version(sub.Installed)
		newer := channel.Chain
		if e := channel.Entry(sub.Installed); e != nil && e.Position >= 0 {
			// The entries below it in the chain are older, whatever their ranges.
			newer = newer[:e.Position]
		}
		return slices.DeleteFunc(slices.Clone(newer), func(e *content.Entry) bool {
			return e.Bundle.Name == sub.Installed || replacementReason(e, sub.Installed, version) == ""
		})
	case sub.LastInstalled != "" && channel.Entry(sub.LastInstalled) != nil:
		return []*content.Entry{channel.Entry(sub.LastInstalled)}
	case sub.StartingCSV != "" && sub.LastInstalled == "":
		if e := channel.Entry(sub.StartingCSV); e != nil {
			return []*content.Entry{e}
		}
		return nil
	default:
		// The previous version was not older than startingCSV, so startingCSV does not apply.
		return channel.Chain
	}
}

// requestedByName reports whether the first entry was requested by its name, so that the order of the channel
// does not matter.
func requestedByName(sub *Subscription, found []*content.Entry) bool {
	return sub.Installed == "" && len(found) > 0 && (found[0].Bundle.Name == sub.StartingCSV || found[0].Bundle.Name == sub.LastInstalled)
}

// replacementReason returns why an entry may be installed over a version; empty if it may not.
func replacementReason(e *content.Entry, installed string, version semver.Version) string {
	switch {
	case e.Replaces == installed:
		return "replaces " + installed
	case slices.Contains(e.Skips, installed):
		return "skips " + installed
	case e.SkipRange == "" || version.EQ(semver.Version{}):
		// A range does not cover an operator of an unknown version.
		return ""
	}
	if covers, err := bundles.ParseRange(e.SkipRange); err == nil && covers(version) {
		return fmt.Sprintf("skipRange %s covers %s", e.SkipRange, version)
	}
	return ""
}

// lookup returns the package of a Subscription.
func (f *finder) lookup(sub *Subscription) (*content.Package, error) {
	catalog, ok := f.catalogs[sub.Catalog]
	if !ok {
		return nil, catalogNotFound(sub, f.catalogs)
	}
	if catalog.Content == nil {
		return nil, &CatalogError{Catalog: sub.Catalog, Err: catalog.cause()}
	}
	pkg := catalog.Content.Package(sub.Package)
	if pkg == nil {
		return nil, packageNotFound(sub, catalog.Content.Packages())
	}
	return pkg, nil
}

// cause returns why a catalog has no content.
func (c Catalog) cause() error {
	if c.Pending {
		return ErrPending
	}
	return c.Err
}

// trueFirst compares two values so that true comes first.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
