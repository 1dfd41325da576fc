// Package content holds the part of a catalog that resolution needs. It holds no manifests and no
// descriptions, and it stores each string once.
//
// The package is pure. A Catalog is built once, from the messages of a server or from a file-based
// catalog. It is immutable, so that goroutines can share it.
package content
