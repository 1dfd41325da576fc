// Package packages kills supervisors while clients read PackageManifests through the API server.
//
// It has only tests. `make e2e` runs them.
package packages
