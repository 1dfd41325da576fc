// Package suite tests the CatalogSource controller on a real API server with
// Kubernetes' own controllers and with registries in process. It holds nothing
// else, so that the tests of the pure parts need no control plane.
package suite
