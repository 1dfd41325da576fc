// Package samples compares the samples of output in the documentation with the actual output of the
// commands, in a cluster as the documentation describes it.
package samples
