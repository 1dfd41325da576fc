// Package packages has clients that read PackageManifests through the API server while supervisors end, contents change, and
// other clients list much.
//
// It has only tests. `make e2e` runs them.
package packages
