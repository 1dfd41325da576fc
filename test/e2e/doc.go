// Package e2e runs the programs as processes against a real control plane and
// kills them at the worst moments.
//
// It has only tests. `make e2e` runs them.
package e2e
