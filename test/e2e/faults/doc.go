// Package faults installs operators while the supervisor's calls to the API server fail, one after
// the other, in every way. It is a package of its own because other tests need no control plane.
package faults
