// Package providedapis says which APIs a ClusterServiceVersion provides, which an
// OperatorGroup has claimed for its members, and whether two groups that reach the
// same namespace claim the same one.
//
// A claim is an entry of the annotation olm.providedAPIs of an OperatorGroup. Of
// groups that claim one API in one namespace a single one keeps it, the same from
// wherever one looks: that of an administrator's fixed list, then the older. So the
// controller that writes the annotation and the one that lets a
// ClusterServiceVersion run need not talk to each other. Everything here is pure.
package providedapis
