// Package content holds what resolution needs to know of a catalog, and nothing
// else: no manifests, no descriptions, every text once.
//
// It is pure. A Catalog is built once, from the messages of a server or from a
// file-based catalog, and never changes; goroutines share it.
package content
