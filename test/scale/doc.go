// Package scale installs one operator in many namespaces, counts the cost, and holds the budget of
// one installation.
//
// A Cluster has a supervisor and counts its requests and reconciliations. A Floor has none: a plain
// client creates the objects of each installation, which is the least work for an installation.
// Exceeded and Grown compare the counts with the budget and with an earlier batch; both are pure
// functions.
package scale
