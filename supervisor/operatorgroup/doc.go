// Package operatorgroup keeps OperatorGroups truthful: which namespaces a
// group targets (status.namespaces), whether it is alone in its namespace
// (condition MultipleOperatorGroup), and the labels by which the targeted
// namespaces can be selected (olm.operatorgroup.uid/<uid>).
//
// Two small reconcilers share the package. One is keyed by OperatorGroup and
// writes its status; the other is keyed by Namespace and writes that
// namespace's labels from all groups there are. The second needs no finalizer
// on the group: whatever happened while no supervisor ran, every namespace is
// compared with the groups that exist when one starts.
package operatorgroup
