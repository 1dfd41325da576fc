// Package suite tests the dry run on a real API server. It holds nothing else, so
// that the tests of the pure parts need no control plane.
package suite
