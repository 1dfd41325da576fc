// Package selection selects a part of a catalog and returns that part as a catalog.
//
// A [Selection] names packages, channels and ranges of versions; it can keep the heads of channels
// only, the upgrade path from installed bundles, and the bundles that kept ones require. There are
// three ways to write one:
//
//   - [Terms] are the values of command line flags;
//   - [Parse] reads a document of the fields of [Selection], in JSON or YAML;
//   - Parse reads an ImageSetConfiguration (mirror.openshift.io/v2alpha1) as well.
//
// [Open] applies a selection to a catalog that is read package by package, such as a
// [github.com/chandlery/chandlery/bundles/fbc.Reader]. The result is also such a catalog, from
// which an index can be built. It reads only the packages that it needs. [Selected.Kept] returns
// the decision for code that writes catalogs: the names of the bundles, the channels with their new
// entries, and the default channel. [Selected.Additions] and [Selected.Unmet] are the added bundles
// and the unmet requirements.
//
// The selected part of a valid catalog is valid and preserves upgrade paths: if a path of the whole
// channel leads from one kept bundle to another, there is one in the selection. An installed bundle
// that is not kept can upgrade to each kept bundle that was the next on its path. Edges are
// combined, never invented: a bundle that can upgrade to another in a selection could do so in the
// whole channel, in one or more steps.
//
// The result is deterministic. It depends on a cluster only through [Selection.Installed], which no
// written form can set.
package selection
