// Package cleanup deletes operators while no supervisor runs, and while the supervisor dies at each
// of its calls to the API server in turn. It compares the cluster before and after. It is a package
// of its own because other tests need no control plane.
package cleanup
