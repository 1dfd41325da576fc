// Package suite tests discovery against a real API server, as users of different rights.
package suite
