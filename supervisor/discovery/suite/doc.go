// Package suite tests discovery against a real API server, as users with different permissions.
package suite
