// Package suite tests the InstallPlan controller on a real API server. It is a separate package, so
// that the tests of the pure parts need no control plane.
package suite
