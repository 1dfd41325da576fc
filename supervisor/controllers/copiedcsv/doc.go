// Package copiedcsv shows to the users of a namespace which operators serve it: a copy
// of each ClusterServiceVersion in each namespace that its OperatorGroup targets, and,
// where the group names its targets, the roles and bindings that the operator needs
// there.
//
// A version is looked at as a whole. What the decision depends on is gathered into an
// observation (observe.go, the only place that reads caches); placeOf says where copies
// belong and decide what is to be done about it (both pure); the steps are then taken one
// by one at a bounded rate (act.go), and those that are left wait for the next pass.
//
// Of a copy, nothing is kept in memory but where it is and a digest of what it was found
// to say: copies are watched as metadata, in a cache of their own, and one is read in
// full only when it has changed without this process having changed it.
//
// Another controller tells in the status of the OLMConfig "cluster" whether the copies are as
// that asks.
package copiedcsv
