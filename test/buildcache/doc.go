// Package buildcache builds programs out of Go modules that the product does not
// depend on (a Kubernetes control plane, a peer server) and keeps them outside the
// repository, so that tests and demonstrations find them ready.
//
// A helper module is a folder with its own go.mod and go.sum that requires the
// modules the programs come from. Its binaries live in a directory whose name is a
// digest of everything that decides what they are; a change builds into another
// directory and never touches the programs of a process that still runs.
//
// Any number of processes may ask for the same module at once: one builds, the
// others wait for it, and a program appears under its name only when it is complete.
package buildcache
