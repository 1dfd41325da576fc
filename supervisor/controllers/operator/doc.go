// Package operator gathers what belongs to an operator. All that bears the label
// operators.coreos.com/<package>.<namespace> is listed, with its conditions, in the status
// of the cluster's Operator <package>.<namespace>.
//
// Three small reconcilers share the package. One is keyed by Operator and writes its
// status; an Operator appears with its first component and goes with its last. One is
// keyed by ClusterServiceVersion and adopts: the label goes from a Subscription to the
// version that it has installed, and from that to whatever the version owns. One is keyed
// by Subscription and takes the label from InstallPlans that newer ones have followed.
//
// Of what other controllers do not keep in memory anyway only the metadata is kept, and
// only of objects made for operators.
package operator
