// Package subscription installs packages and keeps them up to date. It resolves the Subscriptions
// of a namespace against the catalogs, creates the InstallPlans, and reports the result in the
// status of each Subscription.
//
// The unit of work is a namespace: what one Subscription may install depends on the installed
// versions of the others. The unit of failure is a single Subscription: its status alone shows its
// problem.
package subscription
