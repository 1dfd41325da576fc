// Package suite looks for rivals on a real API server.
package suite
