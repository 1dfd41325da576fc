// Package suite tests the manifests: on a real API server, against each other and against docs/security.md.
package suite
