package resolver

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
)

// PinnedError says that a newer version is not installed because the Subscription is
// pinned to the one that is there.
type PinnedError struct {
	// Pin is the version that is there, Available the newest that could be had.
	Pin, Available string
}

// Error says what is held, and how it is let go.
func (e *PinnedError) Error() string {
	return fmt.Sprintf("annotation %s holds %s; %s is available; remove the annotation, or name a newer version in it, to go on", api.AnnotationPin, e.Pin, e.Available)
}

// pinned gives what a Subscription that is pinned to a version may have next: that
// version, or those that lead to it, the nearest to it first. None when it is there,
// whatever has become of the catalog.
func (r *resolution) pinned(sub *Subscription) ([]*content.Entry, error) {
	if sub.Installed == sub.Pin {
		return nil, nil
	}
	pkg, err := r.lookup(sub)
	if err != nil {
		return nil, err
	}
	channels, err := channelsOf(sub, pkg)
	if err != nil {
		return nil, err
	}
	var targets []*content.Entry
	for _, channel := range channels {
		if e := channel.Entry(sub.Pin); e != nil {
			targets = append(targets, e)
		}
	}
	switch {
	case len(targets) == 0:
		return nil, pinNotFound(sub, pkg)
	case targets[0].Bundle.Err != nil:
		return nil, unreadableBundle(sub.Catalog, targets[0].Bundle)
	case sub.Installed == "":
		return targets, nil
	}
	version := r.operator(sub.Installed).version()
	for _, target := range targets {
		if steps := towards(target, sub.Installed, version); len(steps) > 0 {
			return steps, nil
		}
	}
	if i := slices.IndexFunc(targets, func(e *content.Entry) bool { return olderThan(e, sub.Installed, version) }); i >= 0 {
		return targets[i : i+1], nil
	}
	return nil, noWay(sub, targets[0])
}

// towards gives the entries of a channel that may be installed over a version and from
// which updates lead to a certain one, the nearest to it first. What is passed on the
// way is on the channel's chain: what is skipped is not for passing.
func towards(target *content.Entry, installed string, version semver.Version) []*content.Entry {
	distance := map[*content.Entry]int{target: 0}
	queue := []*content.Entry{target}
	var found []*content.Entry
	below := target.Channel.Entry(installed)
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		takesOver := successor(next)
		if takesOver(installed, version) && (below == nil || above(next, below)) {
			found = append(found, next)
		}
		for _, e := range next.Channel.Chain {
			if _, known := distance[e]; known || !above(next, e) || !takesOver(e.Bundle.Name, e.Bundle.Subject.Version) {
				continue
			}
			distance[e] = distance[next] + 1
			queue = append(queue, e)
		}
	}
	slices.SortStableFunc(found, func(a, b *content.Entry) int {
		return cmp.Or(cmp.Compare(distance[a], distance[b]), cmp.Compare(a.Place, b.Place))
	})
	return found
}

// above says whether an entry is not older than another by their places in the channel.
func above(e, other *content.Entry) bool {
	return e != other && (e.Place < 0 || other.Place < 0 || e.Place < other.Place)
}

// successor gives what says whether an entry may be installed over a version, as
// succession does; its range is read once.
func successor(e *content.Entry) func(name string, version semver.Version) bool {
	var covers semver.Range
	if e.SkipRange != "" {
		// One that cannot be read covers nothing.
		covers, _ = bundles.ParseRange(e.SkipRange)
	}
	return func(name string, version semver.Version) bool {
		known := covers != nil && !version.EQ(semver.Version{})
		return e.Replaces == name || slices.Contains(e.Skips, name) || (known && covers(version))
	}
}

// olderThan says whether an entry is older than a version: it stands below it in the
// channel or, where that says nothing, has the lower version.
func olderThan(e *content.Entry, installed string, version semver.Version) bool {
	if there := e.Channel.Entry(installed); there != nil && there.Place >= 0 && e.Place >= 0 {
		return e.Place > there.Place
	}
	own := e.Bundle.Subject.Version
	return !own.EQ(semver.Version{}) && !version.EQ(semver.Version{}) && own.LT(version)
}

// backwards says whether an entry takes a Subscription back to an older version.
func (r *resolution) backwards(sub *Subscription, e *content.Entry) bool {
	if sub.Pin == "" || sub.Installed == "" || e.Bundle.Name != sub.Pin {
		return false
	}
	version := r.operator(sub.Installed).version()
	return len(towards(e, sub.Installed, version)) == 0 && olderThan(e, sub.Installed, version)
}

// heldByPin says which version could be had, were the Subscription not pinned to what
// is there; nil when there is none.
func (r *resolution) heldByPin(sub *Subscription) error {
	if sub.Pin == "" || sub.Installed != sub.Pin {
		return nil
	}
	free := *sub
	free.Pin = ""
	entries, err := r.candidates(&free)
	if err != nil || len(entries) == 0 {
		return nil //nolint:nilerr // the Subscription has what it requested for
	}
	return &PinnedError{Pin: sub.Pin, Available: r.head(sub, entries[0]).Bundle.Name}
}

// head gives the head of the channel of an entry that may be installed next, if updates
// lead there from what is there; else that entry.
func (r *resolution) head(sub *Subscription, next *content.Entry) *content.Entry {
	if len(next.Channel.Chain) == 0 {
		return next
	}
	head := next.Channel.Chain[0]
	if head.Bundle.Err != nil || len(towards(head, sub.Installed, r.operator(sub.Installed).version())) == 0 {
		return next
	}
	return head
}

// pinNotFound says that the version that a Subscription is pinned to is not where it
// looks for versions.
func pinNotFound(sub *Subscription, pkg *content.Package) error {
	remedy := fmt.Sprintf("the package has no version of that name; fix annotation %s, or remove it", api.AnnotationPin)
	if meant := numbered(sub, pkg); len(meant) > 0 {
		remedy = fmt.Sprintf("versions go by their names; set annotation %s to the name of version %s (%s), or remove it", api.AnnotationPin, sub.Pin, listing(meant))
	}
	var elsewhere []string
	for _, channel := range pkg.Channels {
		if channel.Entry(sub.Pin) != nil {
			elsewhere = append(elsewhere, channel.Name)
		}
	}
	if len(elsewhere) > 0 {
		remedy = fmt.Sprintf("set spec.channel to a channel that has it (%s), or name another version in annotation %s", listing(elsewhere), api.AnnotationPin)
	}
	return unsatisfiable(sub, api.ReasonPinNotFound, remedy, "no operators found with name %s in channel %s of package %s in the catalog referenced by subscription %s, which is pinned to it",
		sub.Pin, channelName(sub, pkg), sub.Package, sub.Name)
}

// numbered names the versions of a package that have the number which a Subscription is
// pinned to in place of a name: those of the channel that it requested for, if there are any.
func numbered(sub *Subscription, pkg *content.Package) []string {
	number, err := semver.ParseTolerant(sub.Pin)
	if err != nil {
		return nil
	}
	var here, elsewhere []string
	for _, channel := range pkg.Channels {
		for _, e := range channel.Entries {
			if !e.Bundle.Subject.Version.EQ(number) {
				continue
			}
			if sub.Channel == "" || channel.Name == sub.Channel {
				here = append(here, e.Bundle.Name)
			}
			elsewhere = append(elsewhere, e.Bundle.Name)
		}
	}
	if len(here) == 0 {
		here = elsewhere
	}
	slices.Sort(here)
	return slices.Compact(here)
}

// noWay says that a version can neither be updated to, nor is one to go back to.
func noWay(sub *Subscription, target *content.Entry) error {
	return unsatisfiable(sub, api.ReasonPinNotFound, fmt.Sprintf("set spec.channel to a channel whose updates lead from %s to %s, or name another version in annotation %s", sub.Installed, sub.Pin, api.AnnotationPin),
		"no update of channel %s of package %s leads from %s to %s, which subscription %s is pinned to and which is not older",
		target.Channel.Name, sub.Package, sub.Installed, sub.Pin, sub.Name)
}
