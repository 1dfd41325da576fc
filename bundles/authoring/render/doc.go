// Package render turns what a reference names (a bundle or a catalog, as a directory or an
// image) into file-based catalog objects, as types of operator-registry's alpha/declcfg, and
// writes them in one order: the same content gives the same text.
//
// A catalog directory is read and written package by package, so that memory is bounded by
// its largest packages.
package render
