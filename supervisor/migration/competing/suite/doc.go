// Package suite tests the checks for competing managers on a real API server.
package suite
