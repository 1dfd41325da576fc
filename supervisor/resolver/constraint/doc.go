// Package constraint reads what bundles say of themselves: what they provide and
// what they require of other operators, and tells whether one meets the other.
//
// The properties are those of file-based catalogs and of the annotation
// operatorframework.io/properties: olm.package, olm.gvk, olm.label and
// olm.deprecated on the one hand, olm.package.required, olm.gvk.required,
// olm.label.required and olm.constraint on the other. Everything read here is
// foreign: sizes, depths and the cost of expressions are bounded.
package constraint
