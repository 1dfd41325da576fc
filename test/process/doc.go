// Package process runs our own programs as processes, for the demo and the
// end-to-end suites: each has a name and a log file, none outlives the program that
// started it, and one that ends unasked says so with the end of its log.
package process
