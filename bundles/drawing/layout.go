package drawing

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles/outline"
)

// layout holds the positions of everything. Bundles are rows, the newest on top, and channels are
// columns. A bundle is a dot where its row crosses the column of its channel. Upgrades within a
// channel run along its column, and beside it if other dots are in between.
type layout struct {
	rows    []row
	columns []column
}

// row is a bundle, or a name without a bundle.
type row struct {
	name, version string
	// deprecation is the deprecation of the bundle. notes are the other notes beside it.
	deprecation string
	notes       []string
	// isHead is set for the head of any channel. absent is set for a name that is in no channel.
	isHead, absent bool
}

// column is a channel.
type column struct {
	lane

	dots []dot
	// lines run straight between consecutive dots.
	lines []line
	// left and right are the rails beside the column, by their tracks.
	left, right [][]rail
}

// dot is a bundle in a channel.
type dot struct {
	row             int
	head, absent    bool
	deprecated      bool
	name, skipRange string
}

// line is an upgrade from a dot to the next above it.
type line struct{ from, to int }

// rail is a line from bundles to the bundle that replaces or skips them.
type rail struct {
	to    int
	from  []int
	skips bool
}

// span returns the first and the last row that a rail touches.
func (r rail) span() (top, bottom int) {
	return min(r.to, slices.Min(r.from)), max(r.to, slices.Max(r.from))
}

// next returns the next row along the rail.
func (r rail) next(from int) int {
	out := r.to
	for _, other := range r.from {
		between := from < other && other < out || out < other && other < from
		if between {
			out = other
		}
	}
	return out
}

// place lays out the graph of a package.
func place(p *outline.Package) layout {
	var out layout
	all := lanes(p)
	out.rows = rows(all)
	at := make(map[string]int, len(out.rows))
	for i := range out.rows {
		at[out.rows[i].name] = i
	}
	for _, l := range all {
		out.columns = append(out.columns, newColumn(l, at))
	}
	out.annotate()
	return out
}

// rows returns every name that the lanes mention, highest version first.
func rows(all []lane) []row {
	known := make(map[string]bool)
	var out []row
	for _, l := range all {
		for _, e := range l.Entries {
			if !known[e.Name] {
				known[e.Name] = true
				out = append(out, row{name: e.Name, version: e.Version, deprecation: e.Deprecation})
			}
		}
	}
	for _, l := range all {
		for _, name := range l.absent {
			if !known[name] {
				known[name] = true
				out = append(out, row{name: name, version: versionInName(name), absent: true})
			}
		}
	}
	slices.SortFunc(out, func(a, b row) int {
		return cmp.Or(outline.CompareVersions(b.version, a.version), cmp.Compare(b.name, a.name))
	})
	return out
}

// namedVersion matches the version in names such as "etcdoperator.v0.9.4".
var namedVersion = regexp.MustCompile(`[.-]v?(\d+\.\d+\.\d+([+-][0-9A-Za-z.+-]*)?)$`)

// versionInName returns the version at the end of a name. It orders names whose bundle the catalog lacks.
func versionInName(name string) string {
	if found := namedVersion.FindStringSubmatch(name); found != nil {
		return found[1]
	}
	return ""
}

func newColumn(l lane, at map[string]int) column {
	out := column{lane: l}
	for _, e := range l.Entries {
		out.dots = append(out.dots, dot{
			row: at[e.Name], head: e.Name == l.Head, deprecated: e.Deprecation != "", name: e.Name, skipRange: e.SkipRange,
		})
	}
	for _, name := range l.absent {
		out.dots = append(out.dots, dot{row: at[name], absent: true, name: name})
	}
	slices.SortFunc(out.dots, func(a, b dot) int { return cmp.Compare(a.row, b.row) })
	next := make(map[int]int, len(out.dots))
	for i := 1; i < len(out.dots); i++ {
		next[out.dots[i-1].row] = out.dots[i].row
	}
	var replaces, skips []rail
	for _, e := range l.edges {
		from, to := at[e.from], at[e.to]
		below, found := next[to]
		switch {
		case e.skips:
			skips = join(skips, rail{to: to, from: []int{from}, skips: true})
		case found && below == from:
			out.lines = append(out.lines, line{from: from, to: to})
		default:
			replaces = join(replaces, rail{to: to, from: []int{from}})
		}
	}
	out.left, out.right = tracks(replaces), tracks(skips)
	return out
}

// join adds a rail or extends the one that leads to the same row.
func join(rails []rail, r rail) []rail {
	for i := range rails {
		if rails[i].to == r.to {
			rails[i].from = append(rails[i].from, r.from...)
			return rails
		}
	}
	return append(rails, r)
}

// tracks puts rails beside each other without overlap, short ones nearest to the column.
func tracks(rails []rail) [][]rail {
	slices.SortFunc(rails, func(a, b rail) int {
		aTop, aBottom := a.span()
		bTop, bBottom := b.span()
		return cmp.Or(cmp.Compare(aBottom-aTop, bBottom-bTop), cmp.Compare(aTop, bTop), cmp.Compare(a.to, b.to))
	})
	var out [][]rail
	for _, r := range rails {
		i := slices.IndexFunc(out, func(track []rail) bool { return !slices.ContainsFunc(track, r.overlaps) })
		if i < 0 {
			i = len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

func (r rail) overlaps(other rail) bool {
	top, bottom := r.span()
	otherTop, otherBottom := other.span()
	return top <= otherBottom && otherTop <= bottom
}

// annotate adds the notes beside each row.
func (l *layout) annotate() {
	heads, ranges := make([][]string, len(l.rows)), make([][]string, len(l.rows))
	for _, c := range l.columns {
		for _, d := range c.dots {
			if d.head {
				heads[d.row] = append(heads[d.row], c.Name)
			}
			if d.skipRange != "" && !slices.Contains(ranges[d.row], d.skipRange) {
				ranges[d.row] = append(ranges[d.row], d.skipRange)
			}
		}
	}
	for i := range l.rows {
		r := &l.rows[i]
		if len(heads[i]) > 0 {
			r.isHead = true
			r.notes = append(r.notes, "head of "+printable(strings.Join(heads[i], ", "), maxMessage))
		}
		if len(ranges[i]) > 0 {
			r.notes = append(r.notes, "skipRange "+printable(strings.Join(ranges[i], ", "), maxMessage))
		}
		if r.absent {
			r.notes = append(r.notes, "not in the catalog")
		}
	}
}
