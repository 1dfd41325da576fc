// Package dryrun predicts what the supervisor would do for the Subscriptions of a namespace, and shows it
// before anything changes.
//
// It is pure. It takes the input of the resolver, resolves it, assumes that the chosen versions are installed, and
// resolves it again, until nothing more is installed. The input is the one that the controller of Subscriptions
// would solve for the same objects. Package inputs collects these objects.
package dryrun
