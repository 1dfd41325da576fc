// Package catalogs maintains connections to the catalogs of all CatalogSources and a snapshot of
// the content of each.
//
// It runs on every replica of the supervisor, so that a new leader can resolve at once. A snapshot
// outlives its connection: while a catalog is unreachable, the last known content stays in use.
package catalogs
