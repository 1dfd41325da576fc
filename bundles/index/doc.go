// Package index holds a catalog in the form in which it is served. Every answer of the api.Registry
// contract is already encoded as protobuf, so serving is a table lookup.
//
// An index is one file, which is mapped and never read as a whole. [Create] creates it from a
// catalog that is read package by package. The memory for creating and serving an index does not
// grow with the catalog. The file depends on the content alone, is checked before use, and records
// its source. [Build] does the same in memory, for catalogs that are known to be small.
//
// An [Index] never changes and is safe for concurrent use. The order of every list is fixed: byte
// order of package, channel and bundle names. [Index.Bundles] follows channel, package and bundle,
// as existing servers do.
//
// Text that occurs several times in a package is stored once: a [Message] consists of parts, and
// the large parts are shared.
package index
