// Package constraint parses the properties of bundles: what they provide and what they require of other
// operators. It reports whether one meets the requirements of another.
//
// The properties are those of file-based catalogs and of the annotation operatorframework.io/properties.
// olm.package, olm.gvk, olm.label and olm.deprecated describe a bundle. olm.package.required, olm.gvk.required,
// olm.label.required and olm.constraint are requirements. All input is untrusted: sizes, depths and the cost of
// expressions are bounded.
package constraint
