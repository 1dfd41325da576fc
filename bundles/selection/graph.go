package selection

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// graph is the upgrade graph of a channel from which entries are removed.
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

// reduce returns the channel with only the entries in keep. Paths to a kept entry through removed
// ones become direct edges:
//
//   - the kept entry skips the removed entries and the bundles that they skip;
//   - it replaces the next kept entry down its replaces chain;
//   - its skip range includes those of the removed entries, and the exact version of a kept entry
//     that has no other way to it.
//
// Other entries do not change. The error comes from [bundles.Channel.CheckGraph].
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

// passage collects the edges to a kept entry through removed entries.
type passage struct {
	seen map[string]bool
	// skips are the names of bundles that may upgrade, in the order in which they were found.
	skips []string
	// replaced are kept entries that a removed entry replaces.
	replaced []string
	// ranges are the skip ranges of removed entries.
	ranges []string
}

// reduced returns a kept entry with its new edges. It also returns the kept entries that removed
// ones replace and that have no other edge to the entry.
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

// skips returns the skips of an entry with the additional names. It omits names that are already
// skipped, and removed ones in the skip range. A kept entry is skipped even if another one replaces
// it, because the chain may not pass through it.
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

// follow collects the edges to an entry, and to the removed entries before it.
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

// add records a removed entry and its edges.
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

// replaces returns the next kept entry down the replaces chain of an entry, or its current replaces
// if there is none.
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

// reconnect adds the versions of kept entries to the skip range of the entry that they led to
// through removed ones, if no other path remains. A skip by name would end the chain of the channel
// there.
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
