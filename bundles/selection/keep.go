package selection

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// Kept is the kept part of a package.
type Kept struct {
	// Package is the name of the package.
	Package string
	// DefaultChannel is one of Channels.
	DefaultChannel string
	// Channels are in byte order of their names. They hold the kept entries with their new edges,
	// in the order in which they were written.
	Channels []*bundles.Channel
	// Bundles are the names of the kept bundles, in byte order.
	Bundles []string
}

// HasBundle reports whether the bundle with a name is kept.
func (k *Kept) HasBundle(name string) bool {
	_, found := slices.BinarySearch(k.Bundles, name)
	return found
}

// HasChannel reports whether the channel with a name is kept.
func (k *Kept) HasChannel(name string) bool {
	return slices.ContainsFunc(k.Channels, func(ch *bundles.Channel) bool { return ch.Name == name })
}

// Keeps reports whether the target of a deprecation is kept.
func (k *Kept) Keeps(r bundles.Reference) bool {
	switch r.Schema {
	case bundles.SchemaChannel:
		return k.HasChannel(r.Name)
	case bundles.SchemaBundle:
		return k.HasBundle(r.Name)
	default:
		return true
	}
}

// Apply returns the kept part of the package. It does not change the package. Both share what did not change.
func (k *Kept) Apply(p *bundles.Package) *bundles.Package {
	out := *p
	out.DefaultChannel = k.DefaultChannel
	out.Channels = k.Channels
	out.Bundles = nil
	for _, b := range p.Bundles {
		if k.HasBundle(b.Name) {
			out.Bundles = append(out.Bundles, b)
		}
	}
	out.Deprecations = nil
	for _, list := range p.Deprecations {
		list.Entries = slices.DeleteFunc(slices.Clone(list.Entries), func(d bundles.Deprecation) bool { return !k.Keeps(d.Reference) })
		if len(list.Entries) > 0 {
			out.Deprecations = append(out.Deprecations, list)
		}
	}
	return &out
}

// wanted is the selection for one package.
type wanted struct {
	Package

	onlyDefaultChannel bool
	// installed are the installed bundles of the package.
	installed []string
	// extra are bundles that dependencies need, by channel.
	extra map[string][]string
	// named is set if the selection names the package.
	named bool
}

// choice determines what is kept of one package.
type choice struct {
	wanted

	pkg      *bundles.Package
	versions versions
	found    bundles.Problems
}

// choose returns the kept part of a valid package. The error is [bundles.Problems].
func choose(p *bundles.Package, w wanted) (*Kept, error) {
	known, err := readVersions(p)
	if err != nil {
		return nil, err
	}
	c := &choice{wanted: w, pkg: p, versions: known}
	out := &Kept{Package: p.Name}
	for _, ch := range p.Channels {
		if reduced := c.channel(ch); reduced != nil {
			out.Channels = append(out.Channels, reduced)
		}
	}
	c.missingChannels()
	if len(c.found) == 0 && len(out.Channels) == 0 {
		c.nothing()
	}
	if len(c.found) == 0 {
		out.DefaultChannel = c.defaultChannel(out)
	}
	if err := c.found.OrNil(); err != nil {
		return nil, err
	}
	out.Bundles = entryNames(out.Channels)
	return out, nil
}

// entryNames returns the names of all entries, in byte order.
func entryNames(channels []*bundles.Channel) []string {
	var names []string
	for _, ch := range channels {
		for i := range ch.Entries {
			names = append(names, ch.Entries[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// add adds a problem that prevents the selection.
func (c *choice) add(channel, message, remedy string) {
	c.found = append(c.found, bundles.Problem{Package: c.pkg.Name, Channel: channel, Message: "the selection: " + message, Remedy: remedy})
}

// term returns the selection for a channel, and whether the channel is selected.
func (c *choice) term(ch *bundles.Channel) (Channel, bool) {
	switch {
	case !c.named:
		return Channel{}, false
	case len(c.Channels) > 0:
		for _, term := range c.Channels {
			if term.Name == ch.Name {
				term.Versions = cmp.Or(term.Versions, c.Versions)
				term.Heads = term.Heads || c.Heads
				return term, true
			}
		}
		return Channel{}, false
	case c.onlyDefaultChannel && ch.Name != cmp.Or(c.DefaultChannel, c.pkg.DefaultChannel):
		return Channel{}, false
	}
	return Channel{Name: ch.Name, Versions: c.Versions, Heads: c.Heads}, true
}

// channel returns the kept part of a channel; nil for nothing.
func (c *choice) channel(ch *bundles.Channel) *bundles.Channel {
	term, asked := c.term(ch)
	var keep map[string]bool
	if asked {
		keep = c.entries(ch, term)
		if len(keep) == 0 && len(c.Channels) > 0 && len(c.installed) == 0 {
			c.unmatched(ch, term)
		}
	}
	for _, name := range c.extra[ch.Name] {
		if keep == nil {
			keep = make(map[string]bool)
		}
		keep[name] = true
	}
	if len(keep) == 0 {
		return nil
	}
	reduced, err := reduce(ch, c.versions, keep)
	if err != nil && len(c.extra[ch.Name]) > 0 {
		// Dependencies may add the head, which joins the required entries.
		if head, noHead := ch.Head(); noHead == nil {
			keep[head.Name] = true
			reduced, err = reduce(ch, c.versions, keep)
		}
	}
	if err != nil {
		c.disconnected(ch, err)
		return nil
	}
	return reduced
}

// entries returns the entries of a channel that a term selects.
func (c *choice) entries(ch *bundles.Channel, term Channel) map[string]bool {
	covers, err := parseRange(term.Versions)
	if err != nil {
		c.add(ch.Name, err.Error(), "write a range such as >=1.0.0 <1.2.0")
		return nil
	}
	keep := make(map[string]bool)
	for i := range ch.Entries {
		if name := ch.Entries[i].Name; covers == nil || covers(c.versions[name]) {
			keep[name] = true
		}
	}
	from := slices.Concat(c.From, c.installed)
	switch {
	case len(keep) == 0:
		return nil
	case len(from) > 0:
		return c.paths(ch, keep, from)
	case term.Heads:
		return map[string]bool{c.versions.headOf(ch, keep): true}
	default:
		return keep
	}
}

// paths returns the entries on the upgrade paths from installed bundles to the head; nil if there
// is no such path.
func (c *choice) paths(ch *bundles.Channel, keep map[string]bool, from []string) map[string]bool {
	within, err := reduce(ch, c.versions, keep)
	if err != nil {
		c.disconnected(ch, err)
		return nil
	}
	var out map[string]bool
	for _, installed := range from {
		for _, name := range c.versions.path(within, installed) {
			if out == nil {
				out = map[string]bool{c.versions.headOf(ch, keep): true}
			}
			out[name] = true
		}
	}
	return out
}

// missingChannels reports selected channels that the package lacks.
func (c *choice) missingChannels() {
	has := func(name string) bool {
		return slices.ContainsFunc(c.pkg.Channels, func(ch *bundles.Channel) bool { return ch.Name == name })
	}
	for _, term := range c.Channels {
		if !has(term.Name) {
			c.add(term.Name, "the package has no such channel", "name one of its channels: "+c.channelNames())
		}
	}
	if c.DefaultChannel != "" && !has(c.DefaultChannel) {
		c.add(c.DefaultChannel, "the package has no such channel to be the default", "name one of its channels: "+c.channelNames())
	}
}

func (c *choice) channelNames() string {
	names := make([]string, len(c.pkg.Channels))
	for i, ch := range c.pkg.Channels {
		names[i] = ch.Name
	}
	return strings.Join(names, ", ")
}

// unmatched reports a named channel of which nothing is kept.
func (c *choice) unmatched(ch *bundles.Channel, term Channel) {
	if len(c.From) > 0 {
		c.add(ch.Name, "no upgrade path of the channel begins at "+strings.Join(c.From, ", "), "leave the channel out, or name a bundle that it leads on from")
		return
	}
	c.add(ch.Name, fmt.Sprintf("no version of the channel is in the range %s", term.Versions), "it has "+c.versions.span(ch.Entries))
}

// nothing reports a package of which nothing is kept.
func (c *choice) nothing() {
	if from := slices.Concat(c.From, c.installed); len(from) > 0 {
		c.add("", "no upgrade path of the package begins at "+strings.Join(from, ", "), "name a bundle that one of its channels leads on from")
		return
	}
	var all []bundles.Entry
	for _, ch := range c.pkg.Channels {
		all = append(all, ch.Entries...)
	}
	c.add("", fmt.Sprintf("no version of the package is in the range %s", c.Versions), "it has "+c.versions.span(all))
}

// disconnected reports a channel whose kept entries form no valid upgrade graph.
func (c *choice) disconnected(ch *bundles.Channel, err error) {
	remedy := "choose another range"
	if heads := (*bundles.MultipleHeadsError)(nil); errors.As(err, &heads) {
		remedy = "nothing that is kept leads from one of them to the other: keep heads only, one version, or a range that includes what replaces or skips them"
	}
	c.add(ch.Name, errors.Unwrap(err).Error(), remedy)
}

// defaultChannel returns the default channel of the kept part: the selected one, or the package's.
// If the package's is not kept, it is the channel with the highest head version. If several
// channels were named and kept, the user must select it.
func (c *choice) defaultChannel(k *Kept) string {
	if c.DefaultChannel != "" {
		if !k.HasChannel(c.DefaultChannel) {
			c.add(c.DefaultChannel, "nothing is kept of the channel that is to be the default", "choose another default channel")
		}
		return c.DefaultChannel
	}
	if k.HasChannel(c.pkg.DefaultChannel) {
		return c.pkg.DefaultChannel
	}
	if len(c.Channels) > 1 && len(k.Channels) > 1 {
		c.add("", fmt.Sprintf("the default channel %s is not kept", bundles.Quote(c.pkg.DefaultChannel)),
			"keep it too, or set defaultChannel of the package to one of the channels that are kept")
		return ""
	}
	best := k.Channels[0]
	for _, ch := range k.Channels[1:] {
		if c.headVersion(ch).GT(c.headVersion(best)) {
			best = ch
		}
	}
	return best.Name
}

// headVersion returns the version of the head of a valid channel.
func (c *choice) headVersion(ch *bundles.Channel) semver.Version {
	head, err := ch.Head()
	if err != nil {
		return semver.Version{}
	}
	return c.versions[head.Name]
}
