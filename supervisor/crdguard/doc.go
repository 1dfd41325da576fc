// Package crdguard decides whether an InstallPlan may write a CustomResourceDefinition.
//
// A CustomResourceDefinition belongs to the whole cluster, and a plan writes it with the
// supervisor's rights, as no Role of a namespace can grant them. The rules of this package
// bound what the author of a bundle can do with that. The package is pure: what the rules
// depend on is in a Request.
package crdguard
