// Package examples holds two small operators as sample content for a catalog, and
// the way to make a file-based catalog of them.
//
// bundles/PACKAGE/catalog.yaml holds the package and its channels as they appear
// in the catalog; bundles/PACKAGE/VERSION/ holds the manifests of one version, as
// an author writes them. Render turns both into one catalog file with the
// manifests inline, so that no image registry is needed. catalog/ is its output,
// renewed by `make generate`.
package examples
