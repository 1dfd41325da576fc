// Package providedapis determines which APIs a ClusterServiceVersion provides, and which an OperatorGroup has
// claimed for its members. It also determines whether two groups that reach the same namespace claim the same
// API.
//
// A claim is an entry of the annotation olm.providedAPIs of an OperatorGroup. Among groups that claim one API
// in one namespace, exactly one keeps it, and every caller computes the same one. A fixed list of an
// administrator takes precedence, then the older group. The controller that writes the annotation and the one
// that permits a ClusterServiceVersion to run thus need no communication. The package is pure.
package providedapis
