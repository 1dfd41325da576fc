// Package manifests turns the manifests of operators into bundles of a catalog:
// a ClusterServiceVersion with the objects that belong to it, and the lists of
// them that ConfigMaps hold for CatalogSources of the types configmap and
// internal. It is pure: text in, [bundles.Catalog] out.
package manifests
