// Package suite tests on a real API server that the store follows the replicas
// that EndpointSlices name. It holds nothing else, so that the tests of the store
// need no control plane.
package suite
