package drawing

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles/outline"
)

// Measures of the picture, in pixels.
const (
	margin      = 16
	rowHeight   = 22
	trackWidth  = 7
	laneWidth   = 22
	radius      = 4
	titleHeight = 28
	legendSpace = 34
	// charWidth is the largest width of a character of the font.
	charWidth = 7.3
	// slantWidth and slantHeight are the extent of a character of a channel's name, which is
	// written upwards at 45 degrees.
	slantWidth = charWidth * 0.7072
	// maxChannelName is the number of characters shown of a channel's name.
	maxChannelName = 40
)

// style fits light and dark pages. The picture has its own background, and the colors of channels
// are legible on both.
const style = `text{font:12px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#1f2328}
.bg{fill:#fff}.band{fill:#f3f5f7}.title{font-weight:bold;font-size:14px}
.head{font-weight:bold}.weak{fill:#59636e}.warn{fill:#9a5b00}.off{text-decoration:line-through}
.edge{fill:none;stroke-width:1.5}.skips{stroke-dasharray:4 3}.edge:hover{stroke-width:3}
.guide{stroke:#59636e;stroke-opacity:.25;stroke-dasharray:1 4}
.c0{stroke:#2f81f7;fill:#2f81f7}.c1{stroke:#2da44e;fill:#2da44e}.c2{stroke:#bf8700;fill:#bf8700}.c3{stroke:#a371f7;fill:#a371f7}
.c4{stroke:#e5534b;fill:#e5534b}.c5{stroke:#1b9aaa;fill:#1b9aaa}.c6{stroke:#d4589a;fill:#d4589a}.c7{stroke:#768390;fill:#768390}
.edge,.hollow{fill:none}.hollow{stroke-width:1.5}.name{stroke:none}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bg{fill:#0d1117}.band{fill:#161b22}.weak{fill:#9198a1}.warn{fill:#e3a44b}.guide{stroke:#9198a1}}`

// colors is the number of colors, which channels use in turn.
const colors = 8

// SVG returns the upgrade graph of a package as a picture.
func SVG(p *outline.Package) string {
	d := newPicture(place(p), packageTitle(p))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		d.width, d.height, d.width, d.height)
	fmt.Fprintf(&b, "<title>Upgrade graph of %s</title>\n<style>%s</style>\n", xmlText(packageTitle(p)), style)
	fmt.Fprintf(&b, `<rect class="bg" width="%d" height="%d"/>`+"\n", d.width, d.height)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="%d">%s</text>`+"\n", margin, margin+12, xmlText(packageTitle(p)))
	d.drawRows(&b)
	for i := range d.columns {
		d.drawColumn(&b, i)
	}
	d.drawLegend(&b)
	b.WriteString("</svg>\n")
	return b.String()
}

// picture is a layout in pixels.
type picture struct {
	layout

	// x are the positions of the columns. top is the middle of the first row.
	x             []int
	top           int
	names, notes  int
	versions      int
	width, height int
}

func newPicture(l layout, title string) picture {
	d := picture{layout: l}
	at, overhang := margin, 0
	longest := 0
	for _, c := range l.columns {
		at += len(c.left)*trackWidth + laneWidth/2
		d.x = append(d.x, at)
		name := utf8.RuneCountInString(channelLabel(c))
		longest = max(longest, name)
		overhang = max(overhang, at+int(float64(name)*slantWidth))
		at += len(c.right)*trackWidth + laneWidth/2
	}
	d.top = margin + titleHeight + int(float64(longest)*slantWidth) + rowHeight
	d.names = at + margin
	name, version, note := 0, 0, 0
	for _, r := range l.rows {
		name = max(name, utf8.RuneCountInString(printable(r.name, maxName)))
		version = max(version, utf8.RuneCountInString(printable(r.version, maxName)))
		note = max(note, utf8.RuneCountInString(r.remarks()))
	}
	d.versions = d.names + pixels(name) + margin
	d.notes = d.versions + pixels(version) + margin
	d.width = max(d.notes+pixels(note), overhang, pixels(utf8.RuneCountInString(legend)), pixels(utf8.RuneCountInString(title))*5/4) + margin
	d.height = d.top + len(l.rows)*rowHeight + legendSpace
	return d
}

func pixels(characters int) int { return int(float64(characters) * charWidth) }

func (d *picture) y(row int) int { return d.top + row*rowHeight }

// remarks returns the notes of a row as one text.
func (r row) remarks() string {
	notes := r.notes
	if r.deprecation != "" {
		notes = append(slices.Clip(notes), "deprecated: "+printable(r.deprecation, maxMessage))
	}
	return strings.Join(notes, " · ")
}

func (d *picture) drawRows(b *strings.Builder) {
	for i, r := range d.rows {
		y := d.y(i)
		if i%2 == 0 {
			fmt.Fprintf(b, `<rect class="band" x="0" y="%d" width="%d" height="%d"/>`+"\n", y-rowHeight/2, d.width, rowHeight)
		}
		class := ""
		switch {
		case r.absent:
			class = ` class="weak"`
		case r.deprecation != "":
			class = ` class="off"`
		case r.isHead:
			class = ` class="head"`
		}
		fmt.Fprintf(b, `<line class="guide" x1="%d" y1="%d" x2="%d" y2="%d"/>`, margin, y, d.names-radius, y)
		fmt.Fprintf(b, `<text%s x="%d" y="%d">%s</text>`, class, d.names, y+4, xmlText(printable(r.name, maxName)))
		fmt.Fprintf(b, `<text class="weak" x="%d" y="%d">%s</text>`, d.versions, y+4, xmlText(printable(r.version, maxName)))
		class = "weak"
		if r.deprecation != "" {
			class = "warn"
		}
		fmt.Fprintf(b, `<text class="%s" x="%d" y="%d">%s%s</text>`+"\n", class, d.notes, y+4, xmlText(r.remarks()), tooltip(r.deprecation))
	}
}

// tooltip returns the full text of a shortened text.
func tooltip(text string) string {
	if text == "" {
		return ""
	}
	return "<title>" + xmlText(printable(text, 2000)) + "</title>"
}

func channelLabel(c column) string {
	label := printable(c.Name, maxChannelName)
	if c.isDefault {
		label += " (default)"
	}
	if c.Deprecation != "" {
		label += " (deprecated)"
	}
	return label
}

func (d *picture) drawColumn(b *strings.Builder, column int) {
	c, x := d.columns[column], d.x[column]
	color := fmt.Sprintf("c%d", column%colors)
	y := d.top - rowHeight
	fmt.Fprintf(b, `<text class="name %s" transform="translate(%d %d) rotate(-45)">%s%s</text>`+"\n",
		color, x, y, xmlText(channelLabel(c)), tooltip(title(c.lane)))
	for _, l := range c.lines {
		fmt.Fprintf(b, `<path class="edge %s" d="M%d %dV%d%s"><title>%s</title></path>`+"\n",
			color, x, d.y(l.from)-radius, d.y(l.to)+radius, arrow(x, d.y(l.to)+radius, 0, 1),
			xmlText(d.rows[l.from].name+" is replaced by "+d.rows[l.to].name))
	}
	for i, track := range c.left {
		for _, r := range track {
			d.drawRail(b, color, rails{at: x, side: -1, track: i}, r)
		}
	}
	for i, track := range c.right {
		for _, r := range track {
			d.drawRail(b, color, rails{at: x, side: 1, track: i}, r)
		}
	}
	for _, dot := range c.dots {
		d.drawDot(b, color, x, dot)
	}
}

// rails is the position of rails: beside the column at a place, left (-1) or right (1) of it, on a track.
type rails struct{ at, side, track int }

// drawRail draws a rail as one shape with a segment for each bundle. Each segment has its own tooltip.
func (d *picture) drawRail(b *strings.Builder, color string, beside rails, r rail) {
	x, side := beside.at, beside.side
	out := x + side*(laneWidth/2+beside.track*trackWidth)
	kind, word := "", " is replaced by "
	if r.skips {
		kind, word = " skips", " is skipped by "
	}
	to := d.y(r.to)
	fmt.Fprintf(b, `<path class="edge %s" d="M%d %dH%d%s"/>`+"\n", color, out, to, x+side*radius, arrow(x+side*radius, to, side, 0))
	for _, from := range r.from {
		// Each segment ends at the next one. Overlapping dashes would look like a solid line.
		until := r.next(from)
		fmt.Fprintf(b, `<path class="edge %s%s" d="M%d %dH%dV%d"><title>%s</title></path>`+"\n",
			color, kind, x+side*radius, d.y(from), out, d.y(until), xmlText(d.rows[from].name+word+d.rows[r.to].name))
	}
}

// arrow returns an arrowhead that points to a position from a side or from below.
func arrow(x, y, side, below int) string {
	const long, wide = 5, 3
	if below != 0 {
		return fmt.Sprintf("M%d %dL%d %dL%d %d", x-wide, y+long, x, y, x+wide, y+long)
	}
	return fmt.Sprintf("M%d %dL%d %dL%d %d", x+side*long, y-wide, x, y, x+side*long, y+wide)
}

func (d *picture) drawDot(b *strings.Builder, color string, x int, dot dot) {
	y := d.y(dot.row)
	switch {
	case dot.absent:
		fmt.Fprintf(b, `<circle class="bg" cx="%d" cy="%d" r="%d"/><circle class="hollow %s" stroke-dasharray="2 2" cx="%d" cy="%d" r="%d"/>`,
			x, y, radius, color, x, y, radius)
	case dot.deprecated:
		fmt.Fprintf(b, `<circle class="bg" cx="%d" cy="%d" r="%d"/><circle class="hollow %s" cx="%d" cy="%d" r="%d"/>`,
			x, y, radius, color, x, y, radius)
	default:
		fmt.Fprintf(b, `<circle class="%s" cx="%d" cy="%d" r="%d"/>`, color, x, y, radius)
	}
	if dot.head {
		fmt.Fprintf(b, `<circle class="hollow %s" cx="%d" cy="%d" r="%d"/>`, color, x, y, radius+3)
	}
	b.WriteByte('\n')
}

// legend explains the symbols.
const legend = "──▸ replaced by   ╌╌▸ skipped by   ◉ head of its channel   ○ deprecated   ◌ named, but not in the channel"

func (d *picture) drawLegend(b *strings.Builder) {
	fmt.Fprintf(b, `<text class="weak" x="%d" y="%d">%s</text>`+"\n", margin, d.height-margin, legend)
}

// xmlText escapes a text for the content of an element.
func xmlText(text string) string {
	var b strings.Builder
	// Writing to a strings.Builder does not fail.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
