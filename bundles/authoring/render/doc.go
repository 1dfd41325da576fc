// Package render turns the content of references into file-based catalog objects. A reference names
// a bundle or a catalog, as a directory or an image. The objects are types of operator-registry's
// alpha/declcfg. They are written in one order: the same content produces the same text.
//
// A catalog directory is read and written package by package, so its largest packages bound the memory.
package render
