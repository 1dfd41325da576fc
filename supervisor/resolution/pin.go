package resolution

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// pinned returns the candidates of a Subscription that is pinned to a version: that version, or those that lead to
// it, the nearest to it first. There are none if it is installed, whatever the catalog has.
func (f *finder) pinned(sub *Subscription) ([]*content.Entry, error) {
	if sub.Installed == sub.Pin {
		return nil, nil
	}
	pkg, err := f.lookup(sub)
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
	version := f.operators.version(sub.Installed)
	for _, target := range targets {
		if path := upgradeEntries(target, sub.Installed, version); len(path) > 0 {
			return path, nil
		}
	}
	if i := slices.IndexFunc(targets, func(e *content.Entry) bool { return olderThan(e, sub.Installed, version) }); i >= 0 {
		return targets[i : i+1], nil
	}
	return nil, noUpgradePath(sub, targets[0])
}

// upgradeEntries returns the entries of a channel that may be installed over a version and from which updates lead to
// a target, the nearest to it first. The updates use only entries on the channel's chain: skipped ones are excluded.
func upgradeEntries(target *content.Entry, installed string, version semver.Version) []*content.Entry {
	distance := map[*content.Entry]int{target: 0}
	queue := []*content.Entry{target}
	var found []*content.Entry
	below := target.Channel.Entry(installed)
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		replaces := replacementCheck(next)
		if replaces(installed, version) && (below == nil || notOlder(next, below)) {
			found = append(found, next)
		}
		for _, e := range next.Channel.Chain {
			if _, known := distance[e]; known || !notOlder(next, e) || !replaces(e.Bundle.Name, e.Bundle.Subject.Version) {
				continue
			}
			distance[e] = distance[next] + 1
			queue = append(queue, e)
		}
	}
	slices.SortStableFunc(found, func(a, b *content.Entry) int {
		return cmp.Or(cmp.Compare(distance[a], distance[b]), cmp.Compare(a.Position, b.Position))
	})
	return found
}

// notOlder reports whether an entry is not older than another by their positions in the channel.
func notOlder(e, other *content.Entry) bool {
	return e != other && (e.Position < 0 || other.Position < 0 || e.Position < other.Position)
}

// replacementCheck returns a function that reports whether an entry may be installed over a version, by the rules of
// replacementReason. It parses the entry's range once.
func replacementCheck(e *content.Entry) func(name string, version semver.Version) bool {
	var covers semver.Range
	if e.SkipRange != "" {
		// An invalid range covers nothing.
		covers, _ = bundles.ParseRange(e.SkipRange)
	}
	return func(name string, version semver.Version) bool {
		known := covers != nil && !version.EQ(semver.Version{})
		return e.Replaces == name || slices.Contains(e.Skips, name) || (known && covers(version))
	}
}

// olderThan reports whether an entry is older than a version: by their positions in the channel if both have one, else
// by the version numbers.
func olderThan(e *content.Entry, installed string, version semver.Version) bool {
	if there := e.Channel.Entry(installed); there != nil && there.Position >= 0 && e.Position >= 0 {
		return e.Position > there.Position
	}
	own := e.Bundle.Subject.Version
	return !own.EQ(semver.Version{}) && !version.EQ(semver.Version{}) && own.LT(version)
}

// downgrades reports whether an entry is an older version that a Subscription is pinned to.
func (f *finder) downgrades(sub *Subscription, e *content.Entry) bool {
	if sub.Pin == "" || sub.Installed == "" || e.Bundle.Name != sub.Pin {
		return false
	}
	version := f.operators.version(sub.Installed)
	return len(upgradeEntries(e, sub.Installed, version)) == 0 && olderThan(e, sub.Installed, version)
}

// constrainedByPin returns a *PinnedError with the version that would be available without the pin; nil if there is
// none.
func (f *finder) constrainedByPin(sub *Subscription) error {
	if sub.Pin == "" || sub.Installed != sub.Pin {
		return nil
	}
	free := *sub
	free.Pin = ""
	entries, err := f.candidates(&free)
	if err != nil || len(entries) == 0 {
		return nil //nolint:nilerr // the requested version is installed
	}
	return &PinnedError{Pin: sub.Pin, Available: f.head(sub, entries[0]).Bundle.Name}
}

// head returns the head of the channel of the next entry if updates lead there from the installed version; else
// the next entry.
func (f *finder) head(sub *Subscription, next *content.Entry) *content.Entry {
	if len(next.Channel.Chain) == 0 {
		return next
	}
	head := next.Channel.Chain[0]
	if head.Bundle.Err != nil || len(upgradeEntries(head, sub.Installed, f.operators.version(sub.Installed))) == 0 {
		return next
	}
	return head
}

// namesOfNumber returns the names of the versions with the number that a pin states instead of a name. Those of the
// requested channel come first: others are returned only if it has none.
func namesOfNumber(sub *Subscription, pkg *content.Package) []string {
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
