// Package suite tests a whole release: that it verifies, that changes are found, and that its manifests install and
// remove the product on a real API server.
package suite
