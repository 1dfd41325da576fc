// Package transitionlog derives the stage of an InstallPlan from the status of its Subscriptions. It records on each
// Subscription the transitions of its plans in a log.
//
// It is pure. The controller of Subscriptions writes the log. The controller of InstallPlans waits until the
// Subscriptions show the current stage before it continues. The command line prints the log. They share only
// this package and the API objects.
package transitionlog
