// Package history says where an InstallPlan stands, as its Subscriptions tell it, and
// keeps on each Subscription the ledger of what its plans went through.
//
// It is pure. The controller of Subscriptions writes the ledger, that of InstallPlans
// waits until the Subscriptions show what is so before it goes on, and the command line
// prints what is written. They meet here and in the API objects.
package history
