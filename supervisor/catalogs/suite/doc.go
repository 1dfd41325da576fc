// Package suite tests on a real API server that the store follows the replicas in EndpointSlices.
// It is a separate package, so that the store's other tests need no control plane.
package suite
