// Package suite tests the Subscription controller, together with the controllers of catalogs and
// plans, on a real API server. It holds nothing else, so that the tests of the pure parts need no
// control plane.
package suite
