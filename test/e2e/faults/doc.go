// Package faults installs operators while the calls of the supervisor to the API server
// fail, one after the other, in every way in which calls fail. It holds nothing else, so
// that the other tests need no control plane.
package faults
