// Package outline is a catalog without its manifests: packages, channels, and
// the bundles in them with what a catalog's author says about them. It is what
// listings, pictures of upgrade graphs and comparisons are made of.
//
// An outline comes from an index or from the messages of the api.Registry
// contract, so that whatever serves catalogs can be looked at in one way.
package outline
