// Package operatorcondition creates an OperatorCondition for every ClusterServiceVersion. In this
// object, the operator reports its state, mainly whether it may be upgraded. An administrator can
// override the report.
//
// The object has the name of the version, and so do the Role and the RoleBinding that allow the
// operator's service accounts to write it. Garbage collection deletes them with the version. The
// status shows the result of spec.conditions and spec.overrides. Package opcondition contains the
// rules, which the upgrade controller uses as well.
package operatorcondition
