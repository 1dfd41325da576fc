package constraint

import (
	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// TypeDeprecated is the type of the property that forbids to install its bundle.
const TypeDeprecated = "olm.deprecated"

// Property is a fact about a bundle: Value is JSON text.
type Property struct {
	Type, Value string
}

// Subject is what a bundle, or an installed version, says it is and provides.
type Subject struct {
	// Package is the one it belongs to; empty when it does not say.
	Package string
	// Version is zero when it does not say.
	Version semver.Version
	// GVKs are the APIs that it brings.
	GVKs []bundles.GVK
	// Labels are its olm.label properties.
	Labels []string
	// Deprecated says that it bears olm.deprecated: it must not be installed.
	Deprecated bool
	// Properties are all of them, in their order, as expressions see them.
	Properties []Property
}
