// Package suite tests the supervisor as a whole, leader election included, on a
// real API server. It holds nothing else, so that the other tests need no
// control plane.
package suite
