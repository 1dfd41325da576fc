// Package operator collects the components of an operator. The status of the cluster-scoped
// Operator <package>.<namespace> lists all objects with the label
// operators.coreos.com/<package>.<namespace> and their conditions.
//
// Three reconcilers share the package. The first is keyed by Operator and writes its status. An
// Operator is created with its first component and deleted with its last. The second is keyed by
// ClusterServiceVersion and adds the label: from a Subscription to the installed version, and from
// the version to the objects that it owns. The third is keyed by Subscription and removes the label
// from InstallPlans that newer ones have replaced.
//
// For objects that no other controller caches, the package only caches metadata, and only of
// objects that were created for operators.
package operator
