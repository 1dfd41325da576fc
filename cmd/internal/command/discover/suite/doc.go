// Package suite tests the command discover against a real API server.
package suite
