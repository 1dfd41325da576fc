// Package operatorgroup implements the controllers of OperatorGroups. The status of a group
// contains its target namespaces (status.namespaces) and the ServiceAccount of its operators
// (status.serviceAccountRef). The condition MultipleOperatorGroup reports other groups in the same
// namespace. The controllers label the target namespaces (olm.operatorgroup.uid/<uid>). They also
// record which APIs a group has claimed for its operators (annotation olm.providedAPIs; package
// providedapis contains the rules), and create the cluster roles for the users of these APIs.
//
// Five reconcilers share the package. Two are keyed by OperatorGroup: one writes its status, the
// other its claims. Two are keyed by Namespace: one writes the group labels of the namespace, the
// other the roles of the groups in it. The fifth is keyed by ClusterServiceVersion and creates the
// roles for its APIs. None needs a finalizer. Leftovers of a deleted group have a label with its
// namespace. At every start, they are compared with the existing groups.
package operatorgroup
