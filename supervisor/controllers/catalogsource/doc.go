// Package catalogsource implements the controller of CatalogSources. It runs the catalogs that the
// supervisor hosts, and reports in each status whether the catalog is usable.
//
// Package catalogs maintains the connections to the catalogs.
package catalogsource
