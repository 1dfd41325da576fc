// Package e2e runs the programs as processes with a real control plane and kills them at critical moments.
//
// It has only tests. `make e2e` runs them.
package e2e
