// Package catalogsource tells, in the status of each CatalogSource, whether its
// catalog can be used and what the connection to it looks like.
//
// The connections themselves are the business of package catalogs.
package catalogsource
