package constraint

import (
	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// TypeDeprecated is the type of the property that forbids the installation of its bundle.
const TypeDeprecated = "olm.deprecated"

// Property is a property of a bundle: Value is JSON text.
type Property struct {
	Type, Value string
}

// Subject describes a bundle, or an installed version, and what it provides.
type Subject struct {
	// Package is the package it belongs to; empty if unknown.
	Package string
	// Version is the version; zero if unknown.
	Version semver.Version
	// GVKs are the APIs that it provides.
	GVKs []bundles.GVK
	// Labels are its olm.label properties.
	Labels []string
	// Deprecated is true if it has the property olm.deprecated: it must not be installed.
	Deprecated bool
	// Properties are all of them, in their order, as rules see them.
	Properties []Property
}
