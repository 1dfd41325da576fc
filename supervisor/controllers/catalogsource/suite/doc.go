// Package suite tests the CatalogSource controller on a real API server with the controllers of
// Kubernetes and in-process registries. It is a separate package, so that the tests of the pure
// parts need no control plane.
package suite
