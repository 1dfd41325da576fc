// Package console holds what the commands for a cluster have in common: the connection to the
// cluster, the output formats and the exit codes.
package console
