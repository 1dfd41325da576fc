// Package copiedcsv shows to the users of a namespace which operators serve it. It copies each
// ClusterServiceVersion to each namespace that its OperatorGroup targets. If the group lists its
// targets, it also copies the roles and bindings that the operator needs there.
//
// One reconciliation handles all copies of a version. observe.go reads the inputs of the decision
// from caches into an observation. placementOf determines the namespaces of the copies, and decide
// determines the steps; both are pure. act.go executes the steps at a limited rate. Remaining steps
// follow in the next pass.
//
// For each copy, memory only holds its identity and a digest of its content. A separate cache
// watches copies as metadata. A copy is read in full only after a change by another process.
//
// Another controller reports in the status of the OLMConfig "cluster" whether the copies match its
// settings.
package copiedcsv
