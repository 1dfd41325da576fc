// Package cleanup deletes operators while the supervisor is away, and while it dies at
// each of its calls to the API server in turn, and compares the cluster before and after.
// It holds nothing else, so that the other tests need no control plane.
package cleanup
