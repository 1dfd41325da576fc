// Package edit decides how the files of a catalog, or a template, change when a bundle is
// added or something is deprecated, and changes their texts. It is pure: texts in, texts out.
package edit
