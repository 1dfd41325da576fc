// Package catalogs keeps connections to the catalogs that CatalogSources name
// and a snapshot of the content of each.
//
// It runs on every replica of the supervisor, leading or not, so that a replica
// that takes over can resolve at once. A snapshot outlives the connection it
// came over: while a catalog is away, the last one that was good goes on being
// used.
package catalogs
