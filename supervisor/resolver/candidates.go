package resolver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
)

// candidates gives the entries that a Subscription may have next, best first, and
// why each may be. With something installed it may also be none: there is nothing
// newer.
func (r *resolution) candidates(sub *Subscription) ([]*content.Entry, error) {
	if sub.Pin != "" {
		return r.pinned(sub)
	}
	pkg, err := r.lookup(sub)
	if err != nil {
		return nil, err
	}
	channels, err := channelsOf(sub, pkg)
	if err != nil {
		return nil, err
	}
	var found []*content.Entry
	for _, channel := range channels {
		found = append(found, r.inChannel(sub, channel)...)
	}
	if len(found) == 0 && sub.Installed == "" {
		return nil, noneFound(sub, pkg, channels)
	}
	// An order that cannot be told is a mistake in the catalog to be told, unless
	// a version is asked for by its name.
	if err := shapeProblem(sub, channels); err != nil && !askedByName(sub, found) {
		return nil, err
	}
	// Where there is nothing else, that a bundle cannot be read is the answer; else
	// it is said beside it.
	unreadable := !slices.ContainsFunc(found, func(e *content.Entry) bool { return e.Bundle.Err == nil })
	if unreadable && len(found) > 0 && r.operator(sub.Installed) == nil {
		return nil, unreadableBundle(sub.Catalog, found[0].Bundle)
	}
	return found, nil
}

// unreadableRange says that there may be a newer version, but that the range of
// versions it may be installed over cannot be read; nil when that is not so.
func (r *resolution) unreadableRange(sub *Subscription) error {
	pkg, err := r.lookup(sub)
	if err != nil {
		return nil //nolint:nilerr // told elsewhere
	}
	channels, err := channelsOf(sub, pkg)
	if err != nil {
		return nil //nolint:nilerr // told elsewhere
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
				return &CatalogError{Catalog: sub.Catalog, Err: fmt.Errorf("package %s, channel %s, bundle %s: skipRange: %w; the catalog has to be fixed, ask its publisher",
					sub.Package, channel.Name, e.Bundle.Name, err)}
			}
		}
	}
	return nil
}

// inChannel gives what a channel has for a Subscription.
func (r *resolution) inChannel(sub *Subscription, channel *content.Channel) []*content.Entry {
	switch {
	case sub.Installed != "":
		installed := r.operator(sub.Installed)
		newer := channel.Chain
		if e := channel.Entry(sub.Installed); e != nil && e.Place >= 0 {
			// What stands below in the chain is older, whatever its ranges say.
			newer = newer[:e.Place]
		}
		return slices.DeleteFunc(slices.Clone(newer), func(e *content.Entry) bool {
			return e.Bundle.Name == sub.Installed || succession(e, sub.Installed, installed.version()) == ""
		})
	case sub.Before != "" && channel.Entry(sub.Before) != nil:
		return []*content.Entry{channel.Entry(sub.Before)}
	case sub.StartingCSV != "" && sub.Before == "":
		if e := channel.Entry(sub.StartingCSV); e != nil {
			return []*content.Entry{e}
		}
		return nil
	default:
		// A version that was there before was not older than the starting one, so
		// going back to that is out of the question.
		return channel.Chain
	}
}

// askedByName says whether what was found was asked for by its name, so that the order
// of the channel does not matter.
func askedByName(sub *Subscription, found []*content.Entry) bool {
	return sub.Installed == "" && len(found) > 0 && (found[0].Bundle.Name == sub.StartingCSV || found[0].Bundle.Name == sub.Before)
}

// succession says why an entry may be installed over a version, in few words;
// empty when it may not.
func succession(e *content.Entry, installed string, version semver.Version) string {
	switch {
	case e.Replaces == installed:
		return "replaces " + installed
	case slices.Contains(e.Skips, installed):
		return "skips " + installed
	case e.SkipRange == "" || version.EQ(semver.Version{}):
		// A range says nothing about an operator whose version is not known.
		return ""
	}
	if covers, err := bundles.ParseRange(e.SkipRange); err == nil && covers(version) {
		return fmt.Sprintf("skipRange %s covers %s", e.SkipRange, version)
	}
	return ""
}

// lookup finds the package that a Subscription names.
func (r *resolution) lookup(sub *Subscription) (*content.Package, error) {
	catalog, ok := r.Catalogs[sub.Catalog]
	if !ok {
		return nil, unsatisfiable(sub, api.ReasonCatalogNotFound, r.catalogRemedy(),
			"no operators found from catalog %s in namespace %s referenced by subscription %s", sub.Catalog.Name, sub.Catalog.Namespace, sub.Name)
	}
	if catalog.Content == nil {
		return nil, &CatalogError{Catalog: sub.Catalog, Err: catalog.cause()}
	}
	pkg := catalog.Content.Package(sub.Package)
	if pkg == nil {
		packages := catalog.Content.Packages()
		return nil, unsatisfiable(sub, api.ReasonPackageNotFound,
			fmt.Sprintf("the catalog has %d packages; check spec.name%s", len(packages), similar(sub.Package, packages)),
			"no operators found in package %s in the catalog referenced by subscription %s", sub.Package, sub.Name)
	}
	return pkg, nil
}

// cause says why a catalog has no content.
func (c Catalog) cause() error {
	if c.Pending {
		return ErrPending
	}
	return c.Err
}

// catalogRemedy lists the catalogs that a Subscription could name.
func (r *resolution) catalogRemedy() string {
	names := make([]string, 0, len(r.Catalogs))
	for key := range r.Catalogs {
		names = append(names, key.String())
	}
	if len(names) == 0 {
		return "there is no CatalogSource in this namespace nor in the global one; create one"
	}
	slices.Sort(names)
	return "set spec.source and spec.sourceNamespace to one of " + listing(names)
}

// channelsOf gives the channels that a Subscription follows: the one it names, or
// all of them, the default one first.
func channelsOf(sub *Subscription, pkg *content.Package) ([]*content.Channel, error) {
	if sub.Channel == "" {
		channels := slices.Clone(pkg.Channels)
		slices.SortStableFunc(channels, func(a, b *content.Channel) int { return first(isDefault(a), isDefault(b)) })
		return channels, nil
	}
	if channel := pkg.Channel(sub.Channel); channel != nil {
		return []*content.Channel{channel}, nil
	}
	names := make([]string, 0, len(pkg.Channels))
	for _, channel := range pkg.Channels {
		names = append(names, channel.Name)
	}
	return nil, unsatisfiable(sub, api.ReasonChannelNotFound, "set spec.channel to one of "+listing(names),
		"no operators found in channel %s of package %s in the catalog referenced by subscription %s", sub.Channel, sub.Package, sub.Name)
}

func isDefault(c *content.Channel) bool { return c.Name == c.Package.DefaultChannel }

// shapeProblem says that the channel which a Subscription follows gives its
// entries no order. Of a Subscription that names no channel that is the default
// one: the others are extras.
func shapeProblem(sub *Subscription, channels []*content.Channel) error {
	if len(channels) == 0 || channels[0].Err == nil {
		return nil
	}
	return unsatisfiable(sub, api.ReasonConstraintsNotSatisfiable, "the catalog has to be fixed; ask its publisher, or set spec.channel to another channel", "%v", channels[0].Err)
}

// noneFound says that the channels have nothing for a Subscription.
func noneFound(sub *Subscription, pkg *content.Package, channels []*content.Channel) error {
	if err := shapeProblem(sub, channels); err != nil && sub.StartingCSV == "" {
		return err
	}
	entries := 0
	for _, channel := range channels {
		entries += len(channel.Entries)
	}
	if sub.StartingCSV != "" && entries > 0 {
		return unsatisfiable(sub, api.ReasonStartingVersionNotFound, fmt.Sprintf("set spec.startingCSV to an entry of the channel or remove it; the channel has %d entries", entries),
			"no operators found with name %s in channel %s of package %s in the catalog referenced by subscription %s",
			sub.StartingCSV, channelName(sub, pkg), sub.Package, sub.Name)
	}
	return unsatisfiable(sub, api.ReasonChannelNotFound, "the catalog lists no version there; ask its publisher, or set spec.channel to another channel",
		"no operators found in channel %s of package %s in the catalog referenced by subscription %s", channelName(sub, pkg), sub.Package, sub.Name)
}

func channelName(sub *Subscription, pkg *content.Package) string {
	if sub.Channel != "" {
		return sub.Channel
	}
	return pkg.DefaultChannel
}

// unreadableBundle says that a bundle cannot be chosen because of what it says of
// itself.
func unreadableBundle(catalog CatalogKey, b *content.Bundle) error {
	return &CatalogError{Catalog: catalog, Err: b.Err}
}

// listing joins names, of many the first ones.
func listing(names []string) string {
	const most = 20
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(names[:most], ", "), len(names)-most)
}

// first compares so that what is true comes first.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
