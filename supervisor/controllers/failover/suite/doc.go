// Package suite tests the failover controller on a real API server with the node lifecycle
// controller of Kubernetes. It is a separate package, so that the tests of the pure parts need no
// control plane.
package suite
