package resolver

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// typeConstraint is the type of a property that holds a compound constraint.
const typeConstraint = "olm.constraint"

// dependencyRemedy says what to do about a dependency: it is checked against
// what is installed and not installed along.
const dependencyRemedy = "create a Subscription for a package that provides it; this one goes on by itself then"

// dependenciesMet checks what a choice requires against the operators that are
// present in the namespace.
func (p Problem) dependenciesMet(sub Subscription, c *Choice) error {
	for _, property := range c.Properties {
		if property.Type == typeConstraint {
			return unsatisfiable(sub, "constraints of this type are not evaluated yet, so that the bundle cannot be installed",
				"bundle %s requires an operator that meets an %s", c.Bundle, typeConstraint)
		}
	}
	required, err := bundles.ParseProperties(c.Properties)
	if err != nil {
		return &CatalogError{Catalog: sub.Catalog, Err: fmt.Errorf("package %s, bundle %s: %w", c.Package, c.Bundle, err)}
	}
	for _, gvk := range required.GVKsRequired {
		if !p.provides(c, func(f *bundles.Facts) bool { return containsGVK(f.GVKs, gvk) }) {
			return unsatisfiable(sub, dependencyRemedy,
				"bundle %s requires an operator providing an API with group: %s, version: %s, kind: %s", c.Bundle, gvk.Group, gvk.Version, gvk.Kind)
		}
	}
	for _, pkg := range required.PackagesRequired {
		if !p.provides(c, func(f *bundles.Facts) bool { return containsPackage(f.Packages, pkg) }) {
			return unsatisfiable(sub, dependencyRemedy,
				"bundle %s requires an operator with package: %s and with version in range: %s", c.Bundle, pkg.PackageName, pkg.VersionRange)
		}
	}
	return nil
}

// provides says whether the choice itself or an operator that is present meets
// a condition.
func (p Problem) provides(c *Choice, condition func(*bundles.Facts) bool) bool {
	if facts, err := bundles.ParseProperties(c.Properties); err == nil && condition(facts) {
		return true
	}
	for _, o := range p.Operators {
		if facts, err := bundles.ParseProperties(o.Properties); err == nil && condition(facts) {
			return true
		}
	}
	return false
}

func containsGVK(provided []bundles.GVK, wanted bundles.GVK) bool {
	return slices.Contains(provided, wanted)
}

func containsPackage(provided []bundles.PackageProperty, wanted bundles.PackageRequired) bool {
	inRange, err := semver.ParseRange(wanted.VersionRange)
	if err != nil {
		return false
	}
	for _, pkg := range provided {
		version, err := semver.ParseTolerant(pkg.Version)
		if err == nil && pkg.PackageName == wanted.PackageName && inRange(version) {
			return true
		}
	}
	return false
}
