// Package bundles is the model of operator catalogs: packages, their channels and bundles, the
// rules that make a catalog valid, and the upgrade graph that a channel describes.
//
// All functions are pure: they use no files, no network and no clock. Package fbc reads catalogs
// into these types, package index answers queries from them.
package bundles
