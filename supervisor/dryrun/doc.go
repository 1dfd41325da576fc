// Package dryrun foresees what the supervisor would do for the Subscriptions of
// a namespace, and shows it to a person or a program before anything is done.
//
// It is pure: it takes a problem in the resolver's terms, solves it, pretends that
// what was chosen has been installed, and solves again, until nothing more is
// installed. The problem is the one that the controller of Subscriptions would solve
// for the same objects. Whoever calls it gathers these; package inputs does.
package dryrun
