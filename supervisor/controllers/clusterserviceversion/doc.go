// Package clusterserviceversion takes a ClusterServiceVersion from its first
// sight to its last clean-up.
//
// One reconcile makes at most one transition. What is known is gathered into
// an Observation (observe.go, the only place that reads), Next (phase.go) turns
// it into a Transition without touching anything, act.go does the work that the
// current phase names, and the new phase is written last. A phase is therefore
// always in the API before the work it names begins, and whichever process
// comes next after a crash sees the phase, does its work again and goes on: all
// work is idempotent.
//
// Roles and bindings named by a ClusterServiceVersion come from its
// InstallPlan; here they are checked, and lifted to cluster scope where the
// OperatorGroup targets all namespaces. How Deployments are changed by a
// Subscription is in config.go. Copied ClusterServiceVersions are not looked at.
//
// What has to be undone when a ClusterServiceVersion goes is an ordered list of
// stages (finalize.go). Each pass begins with the first and finds by looking what
// is left to do, so that it may be broken off anywhere; what it waits for is told
// in the status. See docs/decisions/0023-clusterserviceversions.md.
package clusterserviceversion
