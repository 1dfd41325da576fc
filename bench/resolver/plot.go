package main

import (
	"fmt"
	"math"
	"strings"
)

// picture is a row of charts.
type picture []chart

// chart has a vertical scale of times. Both of its scales are logarithmic.
type chart struct {
	title, across string
	curves        []curve
}

// curve is a line through its points.
type curve struct {
	name   string
	points []point
}

// point is a number and a time in seconds.
type point struct{ x, seconds float64 }

// The dimensions of a chart, in pixels: the plot area, and the margins left of, above and below it.
const (
	planeWidth, planeHeight = 360.0, 280.0
	left, top, right, below = 76.0, 64.0, 24.0, 56.0
	chartWidth              = left + planeWidth + right
	chartHeight             = top + planeHeight + below
)

// style has colors for light and dark backgrounds. The second of two curves is also dashed, for
// readers who cannot distinguish the colors.
const style = `<style>
svg { font: 13px system-ui, sans-serif; }
.ground { fill: #ffffff; } text { fill: #1f2328; } .grid { stroke: #d1d9e0; } .frame { stroke: #59636e; fill: none; }
.c0 { stroke: #0969da; fill: #0969da; } .c1 { stroke: #bc4c00; fill: #bc4c00; }
.line { fill: none; stroke-width: 2; } .c1.line { stroke-dasharray: 6 3; } .title { font-weight: 600; }
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117; } text { fill: #f0f6fc; } .grid { stroke: #3d444d; } .frame { stroke: #9198a1; }
.c0 { stroke: #4493f8; fill: #4493f8; } .c1 { stroke: #f0883e; fill: #f0883e; } .line { fill: none; }
}
</style>
`

// svg returns the picture.
func (p picture) svg() string {
	var b strings.Builder
	width := chartWidth * float64(len(p))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img">`+"\n",
		width, chartHeight, width, chartHeight)
	b.WriteString("<title>How long resolution takes</title>\n" + style)
	fmt.Fprintf(&b, `<rect class="ground" width="%.0f" height="%.0f"/>`+"\n", width, chartHeight)
	for i, c := range p {
		fmt.Fprintf(&b, `<g transform="translate(%.0f,0)">`+"\n", float64(i)*chartWidth)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// scale is a logarithmic axis.
type scale struct{ from, to, length float64 }

func (s scale) at(v float64) float64 {
	return (math.Log10(v) - math.Log10(s.from)) / (math.Log10(s.to) - math.Log10(s.from)) * s.length
}

// bounds returns the smallest and the largest value of the points.
func (c chart) bounds(of func(point) float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, curve := range c.curves {
		for _, p := range curve.points {
			low, high = min(low, of(p)), max(high, of(p))
		}
	}
	return low, high
}

func (c chart) draw(b *strings.Builder) {
	low, high := c.bounds(func(p point) float64 { return p.seconds })
	up := scale{math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high))), planeHeight}
	low, high = c.bounds(func(p point) float64 { return p.x })
	across := scale{low * 0.9, high * 1.1, planeWidth}
	fmt.Fprintf(b, `<text class="title" x="%.0f" y="22">%s</text>`+"\n", left, c.title)
	c.axes(b, across, up)
	for i, curve := range c.curves {
		curve.draw(b, i, across, up)
	}
}

// axes draws the frame, a line for each decade of time, and the numbers of the first curve's points below.
func (c chart) axes(b *strings.Builder, across, up scale) {
	for decade := math.Round(math.Log10(up.from)); decade <= math.Round(math.Log10(up.to)); decade++ {
		seconds := math.Pow(10, decade)
		y := top + planeHeight - up.at(seconds)
		fmt.Fprintf(b, `<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/>`+"\n", left, left+planeWidth, y, y)
		fmt.Fprintf(b, `<text x="%.0f" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, y+4, decadeText(seconds))
	}
	last := math.Inf(-1)
	for _, p := range c.curves[0].points {
		x := left + across.at(p.x)
		fmt.Fprintf(b, `<line class="frame" x1="%.1f" x2="%.1f" y1="%.0f" y2="%.0f"/>`+"\n", x, x, top+planeHeight, top+planeHeight+5)
		if x-last >= 30 {
			fmt.Fprintf(b, `<text x="%.1f" y="%.0f" text-anchor="middle">%.0f</text>`+"\n", x, top+planeHeight+20, p.x)
			last = x
		}
	}
	fmt.Fprintf(b, `<rect class="frame" x="%.0f" y="%.0f" width="%.0f" height="%.0f"/>`+"\n", left, top, planeWidth, planeHeight)
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" text-anchor="middle">%s</text>`+"\n", left+planeWidth/2, chartHeight-12, c.across)
	fmt.Fprintf(b, `<text transform="translate(16,%.0f) rotate(-90)" text-anchor="middle">time of one resolution</text>`+"\n", top+planeHeight/2)
}

// decadeText returns the name of a power of ten of seconds.
func decadeText(seconds float64) string {
	for _, unit := range []struct {
		name string
		of   float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if seconds >= unit.of*0.999 {
			return fmt.Sprintf("%.0f %s", seconds/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%.0f ns", seconds*1e9)
}

// draw draws a curve and its name above the plot area.
func (c curve) draw(b *strings.Builder, i int, across, up scale) {
	class := fmt.Sprintf("c%d", i)
	var path []string
	for _, p := range c.points {
		x, y := left+across.at(p.x), top+planeHeight-up.at(p.seconds)
		path = append(path, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3.5"/>`+"\n", class, x, y)
	}
	fmt.Fprintf(b, `<polyline class="%s line" points="%s"/>`+"\n", class, strings.Join(path, " "))
	x := left + float64(i)*196
	fmt.Fprintf(b, `<line class="%s line" x1="%.0f" x2="%.0f" y1="44" y2="44"/>`+"\n", class, x, x+28)
	fmt.Fprintf(b, `<text x="%.0f" y="48">%s</text>`+"\n", x+36, c.name)
}
