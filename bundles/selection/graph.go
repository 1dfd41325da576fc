package selection

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// graph is the upgrade graph of a channel while entries are taken out of it.
type graph struct {
	channel  *bundles.Channel
	versions versions
	entries  map[string]*bundles.Entry
	// ranges are the skip ranges of entries that have one.
	ranges map[string]semver.Range
	keep   map[string]bool
}

func newGraph(ch *bundles.Channel, v versions, keep map[string]bool) *graph {
	g := &graph{
		channel: ch, versions: v, keep: keep,
		entries: make(map[string]*bundles.Entry, len(ch.Entries)), ranges: make(map[string]semver.Range),
	}
	for i := range ch.Entries {
		e := &ch.Entries[i]
		g.entries[e.Name] = e
		if covers, err := parseRange(e.SkipRange); err == nil && covers != nil {
			g.ranges[e.Name] = covers
		}
	}
	return g
}

// reduce returns the channel with only some of its entries. What led to a kept
// entry over others now leads there directly:
//
//   - what is left out, and what that skips, is skipped;
//   - the entry replaces the next kept one down the chain of what it replaces;
//   - ranges that were skipped by what is left out are skipped, and so is the exact
//     version of a kept entry that nothing else leads on from.
//
// Entries that nothing of this concerns stay as they are. The error is that of
// [bundles.Channel.CheckGraph].
func reduce(ch *bundles.Channel, v versions, keep map[string]bool) (*bundles.Channel, error) {
	if !slices.ContainsFunc(ch.Entries, func(e bundles.Entry) bool { return !keep[e.Name] }) {
		return ch, nil
	}
	g := newGraph(ch, v, keep)
	out := *ch
	out.Entries = nil
	var replaced [][]string
	for i := range ch.Entries {
		if !keep[ch.Entries[i].Name] {
			continue
		}
		entry, kept := g.reduced(&ch.Entries[i])
		out.Entries = append(out.Entries, entry)
		replaced = append(replaced, kept)
	}
	g.reconnect(&out, replaced)
	if err := out.CheckGraph(); err != nil {
		return nil, fmt.Errorf("channel %s: %w", bundles.Quote(ch.Name), err)
	}
	return &out, nil
}

// passage is what leads to a kept entry over entries that are left out.
type passage struct {
	seen map[string]bool
	// skips are names that one may come from, in the order in which they are found.
	skips []string
	// replaced are kept entries that one of those that are left out replaces.
	replaced []string
	// ranges are the skip ranges of those that are left out.
	ranges []string
}

// reduced returns a kept entry with its new edges, and the kept entries that lead to
// it only over what is left out and replaces them.
func (g *graph) reduced(e *bundles.Entry) (entry bundles.Entry, replaced []string) {
	p := &passage{seen: map[string]bool{e.Name: true}}
	g.follow(e, p)
	entry = *e
	if len(p.seen) == 1 {
		return entry, nil
	}
	entry.Replaces = g.replaces(e)
	if len(p.ranges) > 0 {
		if e.SkipRange != "" {
			p.ranges = append(p.ranges, e.SkipRange)
		}
		entry.SkipRange = union(p.ranges)
	}
	entry.Skips = g.skips(&entry, p.skips)
	for _, name := range p.replaced {
		if name != entry.Replaces && !slices.Contains(entry.Skips, name) {
			replaced = append(replaced, name)
		}
	}
	return entry, replaced
}

// skips returns what an entry skips and the names that it has to skip besides: none
// that it has already, and none that is left out and in its skip range. A kept entry
// is skipped even if it is replaced too: the chain may not come this way.
func (g *graph) skips(e *bundles.Entry, names []string) []string {
	out := slices.Clone(e.Skips)
	known := map[string]bool{e.Name: true, e.Replaces: !g.keep[e.Replaces]}
	for _, name := range out {
		known[name] = true
	}
	covers, err := parseRange(e.SkipRange)
	slices.Sort(names)
	for _, name := range names {
		version, ok := g.versions[name]
		covered := ok && err == nil && covers != nil && !g.keep[name] && covers(version)
		if !known[name] && !covered {
			out = append(out, name)
		}
		known[name] = true
	}
	return out
}

// follow collects what leads to an entry, and to those that are left out on the way.
func (g *graph) follow(e *bundles.Entry, p *passage) {
	for pending := []*bundles.Entry{e}; len(pending) > 0; {
		at := pending[0]
		pending = pending[1:]
		for _, name := range g.before(at) {
			if !g.keep[name] && !p.seen[name] {
				p.seen[name] = true
				pending = append(pending, g.entries[name])
				p.add(g, g.entries[name])
			}
		}
	}
}

// before returns the entries of the channel that can upgrade to an entry, some of
// them several times.
func (g *graph) before(e *bundles.Entry) []string {
	out := append([]string{e.Replaces}, e.Skips...)
	if covers := g.ranges[e.Name]; covers != nil {
		for i := range g.channel.Entries {
			name := g.channel.Entries[i].Name
			if version, known := g.versions[name]; known && covers(version) {
				out = append(out, name)
			}
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return g.entries[name] == nil })
}

// add notes an entry that is left out, and what leads to it.
func (p *passage) add(g *graph, dropped *bundles.Entry) {
	p.skips = append(p.skips, dropped.Name)
	p.skips = append(p.skips, dropped.Skips...)
	switch {
	case dropped.Replaces == "":
	case g.keep[dropped.Replaces]:
		p.replaced = append(p.replaced, dropped.Replaces)
	default:
		p.skips = append(p.skips, dropped.Replaces)
	}
	if g.ranges[dropped.Name] != nil {
		p.ranges = append(p.ranges, dropped.SkipRange)
	}
}

// replaces returns the next kept entry down the chain of what an entry replaces, or
// what it replaces now when there is none.
func (g *graph) replaces(e *bundles.Entry) string {
	seen := map[string]bool{e.Name: true}
	for next := e.Replaces; next != "" && !seen[next]; {
		if g.keep[next] {
			return next
		}
		seen[next] = true
		dropped := g.entries[next]
		if dropped == nil {
			break
		}
		next = dropped.Replaces
	}
	return e.Replaces
}

// reconnect lets kept entries skip the versions of others that lead to them over
// what is left out, where there is no other way from one to the other. A name would
// end the chain of the channel there.
func (g *graph) reconnect(out *bundles.Channel, replaced [][]string) {
	for i := range out.Entries {
		for _, name := range replaced[i] {
			version, known := g.versions[name]
			if !known || g.connected(out, name, out.Entries[i].Name) {
				continue
			}
			ranges := []string{version.String()}
			if skipRange := out.Entries[i].SkipRange; skipRange != "" {
				ranges = append(ranges, skipRange)
			}
			out.Entries[i].SkipRange = union(ranges)
		}
	}
}

// connected reports whether a path leads from one kept entry to another.
func (g *graph) connected(out *bundles.Channel, from, to string) bool {
	seen := map[string]bool{from: true}
	for pending := []string{from}; len(pending) > 0; {
		at := pending[0]
		pending = pending[1:]
		for _, next := range g.versions.successors(out, at) {
			if next.Name == to {
				return true
			}
			if !seen[next.Name] {
				seen[next.Name] = true
				pending = append(pending, next.Name)
			}
		}
	}
	return false
}
