package drawing

import (
	"fmt"
	"slices"
	"strings"
)

// UpgradePath is the path of several operators from the present versions to the future ones. It is
// drawn in the same three forms as the graph of a package.
type UpgradePath struct {
	Title string
	// Lanes are the names of the Subscriptions, one for each lane.
	Lanes []string
	// Stops are in chronological order.
	Stops []Stop
}

// Stop is a version on a lane. The stops of a lane follow each other.
type Stop struct {
	Lane int
	Kind StopKind
	// Name and Version describe the bundle; empty for a blocked stop.
	Name, Version string
	Notes         []string
	// Needs are the indexes of the stops whose versions this one depends on.
	Needs []int
}

// StopKind is the kind of a stop.
type StopKind int

// The kinds of stops.
const (
	// Present is a version that is installed at the beginning.
	Present StopKind = iota
	// Reached is a version that is installed on the way.
	Reached
	// Awaited is a version that is installed after an approval.
	Awaited
	// Blocked is the end of a lane that cannot continue.
	Blocked
)

// word returns the text for a kind.
func (k StopKind) word() string {
	return [...]string{"present", "installed", "installed after approval", "not installed"}[k]
}

// label returns the lines of a stop.
func (s *Stop) label() []string {
	var out []string
	for _, text := range []string{s.Name, s.Version} {
		if text != "" {
			out = append(out, printable(text, maxName))
		}
	}
	out = append(out, s.Kind.word())
	for _, note := range s.Notes {
		out = append(out, printable(note, maxMessage))
	}
	return out
}

// previous returns the index of the previous stop on the same lane, or a negative number.
func (u *UpgradePath) previous(at int) int {
	for i := at - 1; i >= 0; i-- {
		if u.Stops[i].Lane == u.Stops[at].Lane {
			return i
		}
	}
	return -1
}

// Mermaid returns the path as a Mermaid flowchart.
func (u *UpgradePath) Mermaid() string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %q\n---\n", printable(u.Title, maxName))
	b.WriteString("flowchart LR\n" +
		"  classDef present stroke-dasharray:2 4\n" +
		"  classDef awaited stroke:#b45309\n" +
		"  classDef blocked stroke:#cf222e,stroke-dasharray:4 3\n")
	class := [...]string{":::present", "", ":::awaited", ":::blocked"}
	for lane, name := range u.Lanes {
		fmt.Fprintf(&b, "  subgraph l%d[\"%s\"]\n    direction LR\n", lane, mermaidText(printable(name, maxName)))
		for i := range u.Stops {
			s := &u.Stops[i]
			if s.Lane != lane {
				continue
			}
			label := s.label()
			for k := range label {
				label[k] = mermaidText(label[k])
			}
			fmt.Fprintf(&b, "    s%d[\"%s\"]%s\n", i, strings.Join(label, "<br>"), class[s.Kind])
		}
		b.WriteString("  end\n")
	}
	u.arrows(func(from, to int) {
		arrow := "-->"
		if u.Stops[to].Kind == Blocked {
			arrow = "-.-x"
		}
		fmt.Fprintf(&b, "  s%d %s s%d\n", from, arrow, to)
	}, func(need, by int) {
		fmt.Fprintf(&b, "  s%d -.->|needed by| s%d\n", need, by)
	})
	return b.String()
}

// arrows calls way for each pair of consecutive stops on a lane, and need for each stop that another one needs.
func (u *UpgradePath) arrows(way func(from, to int), need func(need, by int)) {
	for i := range u.Stops {
		if from := u.previous(i); from >= 0 {
			way(from, i)
		}
		for _, needed := range u.Stops[i].Needs {
			need(needed, i)
		}
	}
}

// DOT returns the path in the language of Graphviz.
func (u *UpgradePath) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph journey {\n  label=%s; labelloc=t; rankdir=LR; compound=true; fontname=\"sans-serif\";\n", dotText(printable(u.Title, maxName)))
	b.WriteString("  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n" +
		"  edge [fontname=\"sans-serif\", fontsize=9];\n")
	style := [...]string{
		", style=\"rounded,dotted\", fontcolor=gray40", "", ", color=\"#b45309\"", ", style=\"rounded,dashed\", color=\"#cf222e\"",
	}
	for lane, name := range u.Lanes {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s;\n", lane, dotText(printable(name, maxName)))
		for i := range u.Stops {
			if s := &u.Stops[i]; s.Lane == lane {
				fmt.Fprintf(&b, "    s%d [label=%s%s];\n", i, dotText(strings.Join(s.label(), "\n")), style[s.Kind])
			}
		}
		b.WriteString("  }\n")
	}
	u.arrows(func(from, to int) {
		look := ""
		if u.Stops[to].Kind == Blocked {
			look = " [style=dashed, arrowhead=tee, color=\"#cf222e\"]"
		}
		fmt.Fprintf(&b, "  s%d -> s%d%s;\n", from, to, look)
	}, func(need, by int) {
		fmt.Fprintf(&b, "  s%d -> s%d [label=\"needed by\", style=dashed, constraint=false];\n", need, by)
	})
	b.WriteString("}\n")
	return b.String()
}

// SVG returns the path as a picture. Each stop is a row, from top to bottom in chronological
// order, and each lane is a column.
func (u *UpgradePath) SVG() string {
	p := newStrip(u)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", p.width, p.height, p.width, p.height)
	heading := xmlText(printable(u.Title, maxName))
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", heading, style)
	fmt.Fprintf(&b, `<rect class="bg" width="%d" height="%d"/>`+"\n", p.width, p.height)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="%d">%s</text>`+"\n", margin, margin+12, heading)
	for i := range u.Stops {
		p.drawRow(&b, i)
	}
	for lane, name := range u.Lanes {
		fmt.Fprintf(&b, `<text class="name c%d" transform="translate(%d %d) rotate(-45)">%s%s</text>`+"\n",
			lane%colors, p.x(lane), p.top-rowHeight, xmlText(printable(name, maxChannelName)), tooltip(name))
	}
	for i := range u.Stops {
		p.drawWay(&b, i)
	}
	for i := range u.Stops {
		p.drawStop(&b, i)
	}
	fmt.Fprintf(&b, `<text class="weak" x="%d" y="%d">%s</text>`+"\n", margin, p.height-margin, xmlText(pathLegend))
	b.WriteString("</svg>\n")
	return b.String()
}

// pathLegend explains the symbols.
const pathLegend = "time runs downwards   ╌╌ needed by   ○ present   ● installed   ◉ installed after approval   ✕ not installed"

// strip is the layout of an upgrade path in pixels.
type strip struct {
	*UpgradePath

	top, names, versions, notes, width, height int
}

func newStrip(u *UpgradePath) strip {
	p := strip{UpgradePath: u}
	longest, overhang := 0, 0
	for lane, name := range u.Lanes {
		length := len([]rune(printable(name, maxChannelName)))
		longest = max(longest, length)
		overhang = max(overhang, p.x(lane)+int(float64(length)*slantWidth))
	}
	p.top = margin + titleHeight + int(float64(longest)*slantWidth) + rowHeight
	name, version, note := 0, 0, 0
	for i := range u.Stops {
		s := &u.Stops[i]
		name = max(name, len([]rune(printable(s.Name, maxName))))
		version = max(version, len([]rune(printable(s.Version, maxName))))
		note = max(note, len([]rune(s.remarks())))
	}
	p.names = p.x(len(u.Lanes)) + margin
	p.versions = p.names + pixels(name) + margin
	p.notes = p.versions + pixels(version) + margin
	p.width = max(p.notes+pixels(note), overhang, pixels(len([]rune(pathLegend))), pixels(len([]rune(printable(u.Title, maxName))))*5/4) + 2*margin
	p.height = p.top + len(u.Stops)*rowHeight + legendSpace
	return p
}

// remarks returns the notes of a stop as one text.
func (s *Stop) remarks() string {
	notes := []string{s.Kind.word()}
	for _, note := range s.Notes {
		notes = append(notes, printable(note, maxMessage))
	}
	return strings.Join(notes, " · ")
}

func (p *strip) x(lane int) int { return margin + laneWidth/2 + lane*laneWidth }

func (p *strip) y(row int) int { return p.top + row*rowHeight }

func (p *strip) drawRow(b *strings.Builder, i int) {
	s, y := &p.Stops[i], p.y(i)
	if i%2 == 0 {
		fmt.Fprintf(b, `<rect class="band" x="0" y="%d" width="%d" height="%d"/>`+"\n", y-rowHeight/2, p.width, rowHeight)
	}
	fmt.Fprintf(b, `<line class="guide" x1="%d" y1="%d" x2="%d" y2="%d"/>`, margin, y, p.names-radius, y)
	class, remark := "head", "weak"
	switch s.Kind {
	case Present:
		class = "weak"
	case Blocked:
		remark = "warn"
	case Reached, Awaited:
	}
	fmt.Fprintf(b, `<text class="%s" x="%d" y="%d">%s</text>`, class, p.names, y+4, xmlText(printable(s.Name, maxName)))
	fmt.Fprintf(b, `<text class="weak" x="%d" y="%d">%s</text>`, p.versions, y+4, xmlText(printable(s.Version, maxName)))
	fmt.Fprintf(b, `<text class="%s" x="%d" y="%d">%s%s</text>`+"\n", remark, p.notes, y+4, xmlText(s.remarks()), tooltip(strings.Join(s.Notes, " · ")))
}

// drawWay draws the lines that lead to a stop: its lane and its needs.
func (p *strip) drawWay(b *strings.Builder, i int) {
	s := &p.Stops[i]
	color, x := fmt.Sprintf("c%d", s.Lane%colors), p.x(s.Lane)
	if from := p.previous(i); from >= 0 {
		kind := ""
		if s.Kind == Blocked {
			kind = " skips"
		}
		fmt.Fprintf(b, `<path class="edge %s%s" d="M%d %dV%d"/>`+"\n", color, kind, x, p.y(from)+radius, p.y(i)-radius)
	}
	for _, need := range s.Needs {
		other := p.Stops[need]
		from, y, to := p.x(other.Lane), p.y(need), p.y(i)
		bend := (to - y) / 2
		fmt.Fprintf(b, `<path class="edge skips c%d" d="M%d %dC%d %d %d %d %d %d"><title>%s</title></path>`+"\n",
			other.Lane%colors, from, y, from, y+bend, x, to-bend, x, to, xmlText(printable(other.Name, maxName)+" is needed by "+printable(s.Name, maxName)))
	}
}

func (p *strip) drawStop(b *strings.Builder, i int) {
	s := &p.Stops[i]
	color, x, y := fmt.Sprintf("c%d", s.Lane%colors), p.x(s.Lane), p.y(i)
	switch s.Kind {
	case Present:
		fmt.Fprintf(b, `<circle class="bg" cx="%d" cy="%d" r="%d"/><circle class="hollow %s" cx="%d" cy="%d" r="%d"/>`+"\n", x, y, radius, color, x, y, radius)
	case Awaited:
		fmt.Fprintf(b, `<circle class="%s" cx="%d" cy="%d" r="%d"/><circle class="hollow %s" cx="%d" cy="%d" r="%d"/>`+"\n",
			color, x, y, radius, color, x, y, radius+3)
	case Blocked:
		fmt.Fprintf(b, `<path class="edge %s" d="M%d %dL%d %dM%d %dL%d %d"/>`+"\n",
			color, x-radius, y-radius, x+radius, y+radius, x-radius, y+radius, x+radius, y-radius)
	case Reached:
		fmt.Fprintf(b, `<circle class="%s" cx="%d" cy="%d" r="%d"/>`+"\n", color, x, y, radius)
	}
}

// Stop returns the index of the last stop with a name; negative if there is none.
func (u *UpgradePath) Stop(name string) int {
	for i, s := range slices.Backward(u.Stops) {
		if s.Name == name {
			return i
		}
	}
	return -1
}
