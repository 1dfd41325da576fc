// Package scale installs one operator in many namespaces, counts what that costs, and holds the
// budget of one installation.
//
// A Cluster has a supervisor and counts its requests and passes. A Floor has none: a plain client
// creates the objects of each installation there, which is the least that an installation takes.
// Exceeded and Grown compare what was counted with the budget and with an earlier batch; both are
// pure.
package scale
