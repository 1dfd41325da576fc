// Package subscription keeps packages installed and up to date: it resolves the
// Subscriptions of a namespace against the catalogs, makes the InstallPlans that
// the answers call for, and tells the truth about it in each Subscription's
// status.
//
// The unit of work is a namespace, because what one Subscription may install
// depends on what the others have installed. The unit of failure is a single
// Subscription: a problem is written where it lies and nowhere else.
package subscription
