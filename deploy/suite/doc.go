// Package suite holds the tests of the manifests: on a real API server, against
// each other and against what docs/security.md says.
package suite
