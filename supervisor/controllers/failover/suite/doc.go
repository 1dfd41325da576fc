// Package suite tests the failover controller on a real API server, with the
// controller manager's own verdicts on nodes. It holds nothing else, so that the
// tests of the pure parts need no control plane.
package suite
