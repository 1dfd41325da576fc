// Package outline is a catalog without its manifests: packages, channels, and the bundles in them
// with their metadata. Listings, drawings of upgrade graphs and comparisons use it.
//
// An outline comes from an index or from the messages of the api.Registry contract, so the content
// of any server can be shown in the same way.
package outline
