// Package drawing draws the upgrade graph of a package: as text for Mermaid and
// Graphviz, which lay it out themselves, and as a finished picture in SVG.
//
// A [Journey], the way of several operators through such graphs, is drawn in the
// same forms.
//
// All three say the same: which bundle is in which channel, which is the head,
// what replaces and skips what, and what is deprecated. Arrows point the way
// that an upgrade goes. The same graph gives the same bytes every time, and
// names from a catalog cannot break out of the labels they stand in.
package drawing
