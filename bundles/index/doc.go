// Package index holds a catalog in the form in which it is served: every
// answer of the api.Registry contract is already encoded as protobuf, so that
// serving it is a table lookup.
//
// An [Index] never changes after [Build] and may be read from any number of
// goroutines. The order of every list is fixed: byte order of package, channel
// and bundle names, except for [Index.Bundles], which follows channel, package
// and bundle because clients have always seen it so.
//
// A bundle of several channels keeps its manifests once: a [Message] is made
// of parts, and the large ones are shared.
package index
