// Package clusterserviceversion reconciles ClusterServiceVersions, from their first phase to
// their clean-up.
//
// One reconcile makes at most one transition. The observer reads an Observation. Package phase
// derives a Transition from it without side effects. Then the installer performs the work of the
// current phase, and the new phase is written last. A phase is therefore always in the API before
// its work begins. After a crash, the next process reads the phase and repeats its work: all work
// is idempotent.
//
// The InstallPlan of a ClusterServiceVersion creates its Roles and RoleBindings. This package
// checks them, and copies them to cluster scope where the OperatorGroup targets all namespaces.
// config.go applies the settings of a Subscription to Deployments. Copied ClusterServiceVersions
// are ignored.
//
// Package webhook reads and writes the objects through which the API server calls an operator.
// Package versions finds which versions replace each other, and package ownership which objects
// belong to a version.
//
// The clean-up of a deleted ClusterServiceVersion is in package cleanup. The status shows what it
// waits for. See docs/decisions/0023-clusterserviceversions.md.
package clusterserviceversion
