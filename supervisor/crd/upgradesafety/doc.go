// Package upgradesafety decides whether an InstallPlan may write a CustomResourceDefinition.
//
// A CustomResourceDefinition belongs to the whole cluster. A plan writes it with the supervisor's permissions,
// since no Role of a namespace can grant them. The rules of this package limit the author of a bundle. The
// package is pure: a Request holds all inputs of the rules.
package upgradesafety
