// Package console holds what the commands that a person types against a cluster have
// in common: how the cluster is reached, the forms of the output, and what the program's
// exit code says.
package console
