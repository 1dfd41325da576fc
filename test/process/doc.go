// Package process runs our own programs as processes, for the demo and the end-to-end suites. Each
// has a name and a log file, and none outlives its parent. The error of an unexpected end contains
// the end of the log.
package process
