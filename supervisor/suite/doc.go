// Package suite tests the supervisor as a whole, leader election included, on a real API server. Other tests
// are elsewhere, and need no control plane.
package suite
