package bundles

import (
	"encoding/json"
	"fmt"
)

// The schemas that file-based catalogs know. Objects of any other schema are
// kept as [Custom].
const (
	SchemaPackage      = "olm.package"
	SchemaChannel      = "olm.channel"
	SchemaBundle       = "olm.bundle"
	SchemaDeprecations = "olm.deprecations"
)

// Catalog is everything that one file-based catalog says.
//
// It holds what was read, right or wrong: two packages of the same name stay
// two packages, so that [Catalog.Validate] can name both.
type Catalog struct {
	// Packages in byte order of their names.
	Packages []*Package
	// Strays are objects whose package the catalog does not declare.
	Strays []Stray
	// Custom holds the objects of schemas that the catalog's author made up.
	Custom []Custom
}

// Origin says where in the catalog's files an object stands.
type Origin struct {
	// File is the path below the catalog's root; empty when the object was not
	// read from a file.
	File string
	// Line is the number, from one, of the line that the object begins on;
	// zero when it is not known.
	Line int
}

// String returns "file:line", "file" or "".
func (o Origin) String() string {
	if o.File == "" || o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// Package is one olm.package object and everything that belongs to it.
type Package struct {
	// Name is unique in a valid catalog.
	Name string
	// DefaultChannel names the channel for clients that do not choose one.
	DefaultChannel string
	// Description is a text for people, often Markdown.
	Description string
	// Icon is nil when the package has none.
	Icon *Icon
	// Channels in byte order of their names.
	Channels []*Channel
	// Bundles in byte order of their names.
	Bundles []*Bundle
	// Deprecations in the order they were read; a valid package has at most
	// one.
	Deprecations []DeprecationList
	// Incomplete says that objects of the package may be missing because they
	// could not be read: that something is not there is no problem of its own.
	Incomplete bool
	// Origin of the olm.package object; zero in an incomplete package that may
	// have been declared in what could not be read.
	Origin Origin
}

// undeclared tells whether the olm.package object itself is missing.
func (p *Package) undeclared() bool { return p.Incomplete && p.Origin == (Origin{}) }

// Icon is a picture for catalogs that are shown to people.
type Icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// Channel is one olm.channel object: a graph of entries that replace and skip
// each other.
type Channel struct {
	// Name is unique within its package.
	Name string
	// Package is the name of the package that the channel belongs to.
	Package string
	// Entries in the order they were written.
	Entries []Entry
	// Origin of the olm.channel object.
	Origin Origin
}

// Entry is the place of one bundle in a channel.
type Entry struct {
	// Name of the bundle.
	Name string `json:"name"`
	// Replaces names the bundle that this one upgrades from; it need not be
	// part of the channel. Empty at the end of the chain.
	Replaces string `json:"replaces"`
	// Skips names bundles that an upgrade to this one passes over.
	Skips []string `json:"skips"`
	// SkipRange is a range of versions that this bundle may be installed over
	// directly, in the grammar of github.com/blang/semver. Empty for none.
	SkipRange string `json:"skipRange"`
}

// Bundle is one olm.bundle object: one version of an operator.
type Bundle struct {
	// Name is unique within its package.
	Name string
	// Package is the name of the package that the bundle belongs to.
	Package string
	// Image is the reference of the bundle's image; empty when the manifests
	// are inline.
	Image string
	// Properties in the order they were written.
	Properties []Property
	// RelatedImages in the order they were written.
	RelatedImages []RelatedImage
	// Origin of the olm.bundle object.
	Origin Origin
}

// RelatedImage is an image that a bundle needs at run time.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// Property is a fact about a bundle, as raw JSON.
type Property struct {
	// Type says how to read the value; see the Type constants.
	Type string `json:"type"`
	// Value is compact JSON with sorted keys.
	Value json.RawMessage `json:"value"`
}

// DeprecationList is one olm.deprecations object.
type DeprecationList struct {
	// Entries in the order they were written.
	Entries []Deprecation
	// Origin of the olm.deprecations object.
	Origin Origin
}

// Deprecation says that a package, a channel or a bundle should no longer be
// used.
type Deprecation struct {
	// Reference is what is deprecated.
	Reference Reference `json:"reference"`
	// Message says why and what to use instead.
	Message string `json:"message"`
}

// Reference names an object within a package.
type Reference struct {
	// Schema is SchemaPackage, SchemaChannel or SchemaBundle.
	Schema string `json:"schema"`
	// Name of the channel or bundle; empty for the package itself.
	Name string `json:"name"`
}

// Stray is an object that names a package the catalog does not declare.
type Stray struct {
	Schema  string
	Package string
	Name    string
	Origin  Origin
}

// Custom is an object of a schema that the catalog's author made up.
type Custom struct {
	Schema  string
	Package string
	Name    string
	// Blob is the whole object as compact JSON with sorted keys.
	Blob   json.RawMessage
	Origin Origin
}

// Deprecated returns the message of the deprecation of an object of the
// package, and whether there is one. The name is ignored for the package
// itself.
func (p *Package) Deprecated(schema, name string) (string, bool) {
	if schema == SchemaPackage {
		name = ""
	}
	want := Reference{Schema: schema, Name: name}
	for _, list := range p.Deprecations {
		for _, entry := range list.Entries {
			if entry.Reference == want {
				return entry.Message, true
			}
		}
	}
	return "", false
}
