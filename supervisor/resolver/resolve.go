package resolver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// Resolve answers every Subscription of a problem on its own.
func Resolve(p Problem) Solution {
	solution := Solution{}
	senior := map[string]Subscription{}
	for _, sub := range bySeniority(p.Subscriptions) {
		first, taken := senior[sub.Package]
		if taken && p.wish(first) != p.wish(sub) {
			solution[sub.Name] = Outcome{Err: p.refusal(first, sub)}
			continue
		}
		if !taken && p.claims(sub) {
			senior[sub.Package] = sub
		}
		choice, err := p.next(sub)
		solution[sub.Name] = Outcome{Install: choice, Err: err}
	}
	return solution
}

// bySeniority puts the Subscriptions first that hold what is installed, whatever
// their age: a mistake that is mended later must not take over what another one
// has installed meanwhile.
func bySeniority(subscriptions []Subscription) []Subscription {
	sorted := slices.Clone(subscriptions)
	slices.SortStableFunc(sorted, func(a, b Subscription) int {
		switch {
		case a.Holds == b.Holds:
			return 0
		case a.Holds:
			return -1
		default:
			return 1
		}
	})
	return sorted
}

// claims says whether a Subscription keeps its package from others that want it
// differently. One that asks for what no catalog offers is a mistake, and others
// must not suffer from it; one whose catalog is merely away keeps its claim, as
// does the one that what is installed came from.
func (p Problem) claims(sub Subscription) bool {
	return sub.Holds || p.mistake(sub) == nil
}

// mistake says what is wrong with a Subscription by itself, whatever is
// installed; nil when nothing is.
func (p Problem) mistake(sub Subscription) *UnsatisfiableError {
	sub.Installed, sub.Before = "", ""
	pkg, err := p.lookup(sub)
	if err == nil {
		var channel *bundles.Channel
		if channel, err = channelOf(sub, pkg); err == nil && sub.StartingCSV != "" {
			_, err = p.candidate(sub, channel)
		}
	}
	mistake, _ := errors.AsType[*UnsatisfiableError](err)
	return mistake
}

// refusal is the error of a Subscription whose package another one keeps: its
// own mistake where it has made one, since mending that comes first.
func (p Problem) refusal(first, sub Subscription) error {
	if mistake := p.mistake(sub); mistake != nil {
		mistake.Rival = first.Name
		return mistake
	}
	return rival(first, sub)
}

// wish is what a Subscription asks for.
type wish struct {
	catalog              CatalogKey
	channel, startingCSV string
}

// wish gives what a Subscription asks for, with the default channel by its name
// and without a starting version where that has no meaning any more.
func (p Problem) wish(sub Subscription) wish {
	w := wish{catalog: sub.Catalog, channel: sub.Channel, startingCSV: sub.StartingCSV}
	if pkg, err := p.lookup(sub); err == nil && w.channel == "" {
		w.channel = pkg.DefaultChannel
	}
	if sub.Installed != "" {
		w.startingCSV = ""
	}
	return w
}

// rival refuses a Subscription whose package another one asks for differently.
func rival(first, sub Subscription) error {
	return &UnsatisfiableError{
		Reasons: []string{
			fmt.Sprintf("there can be only one operator from package %s", sub.Package),
			fmt.Sprintf("subscription %s exists", first.Name),
			fmt.Sprintf("subscription %s exists", sub.Name),
		},
		Rival:  first.Name,
		Remedy: fmt.Sprintf("delete subscription %s, or give it the same source, channel and startingCSV as subscription %s", sub.Name, first.Name),
	}
}

// next finds the version that a Subscription should have next; nil when it has
// the newest one.
func (p Problem) next(sub Subscription) (*Choice, error) {
	pkg, err := p.lookup(sub)
	if err != nil {
		return nil, err
	}
	channel, err := channelOf(sub, pkg)
	if err != nil {
		return nil, err
	}
	entry, err := p.candidate(sub, channel)
	if err != nil || entry == nil {
		return nil, err
	}
	choice, err := choose(sub, pkg, channel, *entry)
	if err != nil {
		return nil, err
	}
	if err := p.dependenciesMet(sub, choice); err != nil {
		return nil, err
	}
	return choice, nil
}

// lookup finds the package that a Subscription names.
func (p Problem) lookup(sub Subscription) (*bundles.Package, error) {
	catalog, ok := p.Catalogs[sub.Catalog]
	if !ok {
		return nil, unsatisfiable(sub, p.catalogRemedy(),
			"no operators found from catalog %s in namespace %s referenced by subscription %s", sub.Catalog.Name, sub.Catalog.Namespace, sub.Name)
	}
	if catalog.Content == nil {
		return nil, &CatalogError{Catalog: sub.Catalog, Err: catalog.Err}
	}
	packages := catalog.Content.Packages
	i, ok := slices.BinarySearchFunc(packages, sub.Package, func(pkg *bundles.Package, name string) int {
		return strings.Compare(pkg.Name, name)
	})
	if !ok {
		return nil, unsatisfiable(sub, fmt.Sprintf("the catalog has %d packages; check spec.name%s", len(packages), similar(sub.Package, packages)),
			"no operators found in package %s in the catalog referenced by subscription %s", sub.Package, sub.Name)
	}
	return packages[i], nil
}

// catalogRemedy lists the catalogs that a Subscription could name.
func (p Problem) catalogRemedy() string {
	names := make([]string, 0, len(p.Catalogs))
	for key := range p.Catalogs {
		names = append(names, key.String())
	}
	if len(names) == 0 {
		return "there is no CatalogSource in this namespace nor in the global one; create one"
	}
	slices.Sort(names)
	return "set spec.source and spec.sourceNamespace to one of " + strings.Join(names, ", ")
}

// similar names the packages that contain what was asked for, or are contained
// in it, as a help against slips of the pen.
func similar(name string, packages []*bundles.Package) string {
	const most = 5
	var found []string
	for _, pkg := range packages {
		if strings.Contains(pkg.Name, name) || strings.Contains(name, pkg.Name) {
			found = append(found, pkg.Name)
		}
	}
	if len(found) == 0 || name == "" {
		return ""
	}
	return ", it has for instance " + strings.Join(found[:min(most, len(found))], ", ")
}

// channelOf finds the channel that a Subscription follows.
func channelOf(sub Subscription, pkg *bundles.Package) (*bundles.Channel, error) {
	name := sub.Channel
	if name == "" {
		name = pkg.DefaultChannel
	}
	names := make([]string, 0, len(pkg.Channels))
	for _, channel := range pkg.Channels {
		if channel.Name == name {
			return channel, nil
		}
		names = append(names, channel.Name)
	}
	return nil, unsatisfiable(sub, "set spec.channel to one of "+strings.Join(names, ", "),
		"no operators found in channel %s of package %s in the catalog referenced by subscription %s", name, sub.Package, sub.Name)
}

// candidate finds the entry to be installed: for a Subscription that has nothing
// the version it had before, the starting version or the head, else the best entry that takes over from
// what it has. Nil when there is none newer.
func (p Problem) candidate(sub Subscription, channel *bundles.Channel) (*bundles.Entry, error) {
	if sub.Installed != "" {
		return p.successor(sub, channel), nil
	}
	if entry, ok := channel.Entry(sub.Before); ok && sub.Before != "" {
		return &entry, nil
	}
	// A version that was there before was not older than the starting one, so
	// going back to that is out of the question.
	if sub.StartingCSV == "" || sub.Before != "" {
		head, err := channel.Head()
		if err != nil {
			return nil, unsatisfiable(sub, "ask the publisher of the catalog to mend the channel",
				"channel %s of package %s: %v", channel.Name, sub.Package, err)
		}
		return &head, nil
	}
	i := slices.IndexFunc(channel.Entries, func(e bundles.Entry) bool { return e.Name == sub.StartingCSV })
	if i < 0 {
		return nil, unsatisfiable(sub, fmt.Sprintf("set spec.startingCSV to an entry of the channel or remove it; the channel has %d entries", len(channel.Entries)),
			"no operators found with name %s in channel %s of package %s in the catalog referenced by subscription %s", sub.StartingCSV, channel.Name, sub.Package, sub.Name)
	}
	return &channel.Entries[i], nil
}

// successor finds the entry nearest to the channel's head that may be installed
// directly over what a Subscription has.
func (p Problem) successor(sub Subscription, channel *bundles.Channel) *bundles.Entry {
	i := slices.IndexFunc(p.Operators, func(o Operator) bool { return o.Name == sub.Installed })
	for _, entry := range channel.Successors(sub.Installed, p.versionAt(i)) {
		named := entry.Replaces == sub.Installed || slices.Contains(entry.Skips, sub.Installed)
		// A range says nothing about an operator whose version is not known.
		if named || p.versionAt(i).NE(semver.Version{}) {
			return &entry
		}
	}
	return nil
}

func (p Problem) versionAt(i int) semver.Version {
	if i < 0 {
		return semver.Version{}
	}
	return p.Operators[i].Version
}

// errNoBundle says that a channel lists a version that the package lacks.
var errNoBundle = errors.New("the channel lists a bundle that the package does not have")

// choose makes an entry a choice.
func choose(sub Subscription, pkg *bundles.Package, channel *bundles.Channel, entry bundles.Entry) (*Choice, error) {
	i := slices.IndexFunc(pkg.Bundles, func(b *bundles.Bundle) bool { return b.Name == entry.Name })
	if i < 0 {
		err := fmt.Errorf("package %s, channel %s, entry %s: %w", pkg.Name, channel.Name, entry.Name, errNoBundle)
		return nil, &CatalogError{Catalog: sub.Catalog, Err: err}
	}
	replaces := entry.Replaces
	if sub.Installed != "" {
		replaces = sub.Installed
	}
	return &Choice{
		Catalog: sub.Catalog, Package: pkg.Name, Channel: channel.Name, Bundle: entry.Name, Replaces: replaces,
		Properties: pkg.Bundles[i].Properties, Image: pkg.Bundles[i].Image,
	}, nil
}
