// Package selection decides which part of a catalog is wanted, and returns that
// part as a catalog.
//
// A [Selection] names packages, channels and ranges of versions; it can keep the
// heads of channels only, the upgrade path from what is installed, and what the
// kept bundles require of others. There are three ways to write one:
//
//   - [Terms] are the values of command line flags;
//   - [Parse] reads a document of the fields of [Selection], in JSON or YAML;
//   - Parse reads an ImageSetConfiguration (mirror.openshift.io/v2alpha1) as well.
//
// [Open] applies a selection to a catalog that is read package by package, such as
// a [github.com/chandlery/chandlery/bundles/fbc.Reader]. The result is again such a
// catalog, of which an index can be made, and reads only the packages that it has
// to. [Selected.Kept] returns the decision itself, for those who write catalogs:
// the names of the bundles, the channels with their new entries, the default
// channel. [Selected.Additions] and [Selected.Unmet] are what dependencies added and lack.
//
// What is selected is a valid catalog if the whole was, and keeps upgrade paths:
// where a path of the whole channel leads from one kept bundle to another, there is
// one among the kept. An installed bundle that is not kept can upgrade to each kept
// bundle that was the next on its way. Edges are only ever put together, never
// invented: what can upgrade to a bundle in a selection could do so in the whole
// channel, in one step or several.
//
// Everything is deterministic and nothing depends on a cluster, except through
// [Selection.Installed], which no written form can set.
package selection
