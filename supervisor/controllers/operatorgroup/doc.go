// Package operatorgroup keeps OperatorGroups truthful: which namespaces a
// group targets (status.namespaces), whether it is alone in its namespace
// (condition MultipleOperatorGroup), with which ServiceAccount its operators are
// installed (status.serviceAccountRef), and the labels by which the targeted
// namespaces can be selected (olm.operatorgroup.uid/<uid>). It also writes down
// which APIs a group has claimed for its operators (annotation olm.providedAPIs;
// package providedapis has the rules) and keeps the cluster roles by which people
// use those APIs.
//
// Small reconcilers share the package. Two are keyed by OperatorGroup: one writes
// its status, the other its claims. Two are keyed by Namespace: one writes that
// namespace's labels from all groups there are, the other the roles of the groups
// in it. The last is keyed by ClusterServiceVersion and makes the roles for its
// APIs. None needs a finalizer: what a group left behind while no supervisor ran
// carries a label that leads back to its namespace, and is compared with the groups
// that exist when one starts.
package operatorgroup
