// Package suite tests the dry run on a real API server. The tests of the pure parts are elsewhere, and need no
// control plane.
package suite
