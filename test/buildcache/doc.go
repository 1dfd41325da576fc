// Package buildcache builds programs from Go modules that the product does not depend on, such as a
// Kubernetes control plane or a peer server. It stores them outside the repository for tests and
// demonstrations.
//
// A helper module is a folder with its own go.mod and go.sum that requires the modules of the
// programs. Its binaries are in a directory whose name is a digest of everything that determines
// them. After a change they are built into another directory, so programs of running processes do
// not change.
//
// Any number of processes may request the same module concurrently: one builds and the others wait.
// A program gets its name after it is complete.
package buildcache
