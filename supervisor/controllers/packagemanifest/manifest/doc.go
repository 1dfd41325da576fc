// Package manifest converts the content of catalogs to PackageManifests, and decides which of them a namespace shows.
//
// It is pure. A package is stored compressed: its texts are ten times larger than what tables and selectors need.
package manifest
