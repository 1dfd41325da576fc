// Package history derives the stage of an InstallPlan from the status of its Subscriptions. It records on each
// Subscription the transitions of its plans in a ledger.
//
// It is pure. The controller of Subscriptions writes the ledger. The controller of InstallPlans waits until the
// Subscriptions show the current stage before it continues. The command line prints the ledger. They share only
// this package and the API objects.
package history
