// Package index holds a catalog in the form in which it is served: every
// answer of the api.Registry contract is already encoded as protobuf, so that
// serving it is a table lookup.
//
// An index is one file, which is mapped and never read as a whole. [Create]
// makes it from a catalog that is read package by package, so that neither
// making nor serving it takes memory in proportion to the catalog. The file
// depends on the content alone, is checked before anything of it is used, and
// says what it has been made of. [Build] does the same in memory, for catalogs
// that are known to be small.
//
// An [Index] never changes and may be read from any number of goroutines. The
// order of every list is fixed: byte order of package, channel and bundle names,
// except for [Index.Bundles], which follows channel, package and bundle because
// clients have always seen it so.
//
// Text that occurs several times in a package is there once: a [Message] is made
// of parts, and the large ones are shared.
package index
