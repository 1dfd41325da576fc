// Package bundles is the domain of operator catalogs: packages, their channels
// and bundles, the rules that make a catalog valid, and the upgrade graph that
// a channel describes.
//
// Everything here is pure: no files, no network, no clock. Package fbc reads
// catalogs into these types, package index answers queries from them.
package bundles
