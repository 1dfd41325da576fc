// Package suite tests the InstallPlan controller on a real API server. It is a
// package of its own so that the tests of the pure parts need no control plane.
package suite
