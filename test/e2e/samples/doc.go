// Package samples compares the samples of output in the documentation with what the
// commands really print, in a cluster that is as the documentation says.
package samples
