// Package drawing draws the upgrade graph of a package: as text for Mermaid and Graphviz, which
// compute the layout, and as a picture in SVG.
//
// A [Journey], the path of several operators through such graphs, is drawn in the same forms.
//
// All three forms show the same: which bundle is in which channel, which is the head, what replaces
// and skips what, and what is deprecated. Arrows point in the direction of upgrades. The same graph
// produces the same bytes every time. Names from a catalog cannot break out of their labels.
package drawing
