// Package edit changes the files of a catalog or a template when a bundle is added or something is
// deprecated. Its functions are pure: they take texts and return texts.
package edit
