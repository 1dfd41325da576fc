// Package imagepolicy decides which images the supervisor may use, by the signatures that the cluster and the
// CatalogSources require.
package imagepolicy
