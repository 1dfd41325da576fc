// Package manifests converts the manifests of operators to bundles of a catalog. It reads a
// ClusterServiceVersion with its objects, and the lists in ConfigMaps for CatalogSources of the
// types configmap and internal. Its functions are pure: they take texts and return a
// [bundles.Catalog].
package manifests
