// Package clusterserviceversion reconciles ClusterServiceVersions, from their first phase to
// their clean-up.
//
// One reconcile makes at most one transition. It reads an Observation (observe.go is the only
// reader). Next (phase.go) derives a Transition from it without side effects. Then act.go performs
// the work of the current phase, and the new phase is written last. A phase is therefore always in
// the API before its work begins. After a crash, the next process reads the phase and repeats its
// work: all work is idempotent.
//
// The InstallPlan of a ClusterServiceVersion creates its Roles and RoleBindings. This package
// checks them, and copies them to cluster scope where the OperatorGroup targets all namespaces.
// config.go applies the settings of a Subscription to Deployments. Copied ClusterServiceVersions
// are ignored.
//
// The clean-up of a deleted ClusterServiceVersion is an ordered list of stages (finalize.go). Each
// pass begins with the first stage and reads what is left, so that it may be interrupted anywhere.
// The status shows what the clean-up waits for. See docs/decisions/0023-clusterserviceversions.md.
package clusterserviceversion
