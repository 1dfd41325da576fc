// Package operatorcondition gives every ClusterServiceVersion an OperatorCondition: the
// object in which the operator says how it is, above all whether it may be upgraded, and
// in which an administrator may say otherwise.
//
// The object, and the Role and RoleBinding by which the operator's service accounts may
// write to it, have the name of the version; garbage collection takes them away with it.
// What spec.conditions and spec.overrides come to is shown in the status. The package
// verdict has the rules for that, which whoever upgrades the operator goes by as well.
package operatorcondition
