package bundles

import (
	"encoding/json"
	"fmt"
)

// The known schemas of file-based catalogs. Objects of any other schema are kept as [Custom].
const (
	SchemaPackage      = "olm.package"
	SchemaChannel      = "olm.channel"
	SchemaBundle       = "olm.bundle"
	SchemaDeprecations = "olm.deprecations"
)

// Catalog is the content of a file-based catalog.
//
// It holds what was read, valid or not. For example, two packages of the same name stay two
// packages, so [Catalog.Validate] can name both.
type Catalog struct {
	// Packages are sorted by name, in byte order.
	Packages []*Package
	// Strays are objects whose package the catalog does not declare.
	Strays []Stray
	// Custom holds the objects of schemas that the catalog's author defined.
	Custom []Custom
}

// Origin is the position of an object in the catalog's files.
type Origin struct {
	// File is the path below the catalog's root; empty when the object was not
	// read from a file.
	File string
	// Line is the number, from one, of the line at which the object begins; zero if unknown.
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
	// Channels are sorted by name, in byte order.
	Channels []*Channel
	// Bundles are sorted by name, in byte order.
	Bundles []*Bundle
	// Deprecations are in the order in which they were read. A valid package has at most one.
	Deprecations []DeprecationList
	// Incomplete is set if objects of the package may be missing because they could not be read.
	// Then missing objects are not reported.
	Incomplete bool
	// Origin is the position of the olm.package object; zero in an incomplete package whose
	// declaration may be among what could not be read.
	Origin Origin
}

// undeclared reports whether the olm.package object is missing.
func (p *Package) undeclared() bool { return p.Incomplete && p.Origin == (Origin{}) }

// Icon is a picture that catalogs show to users.
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
	// Entries are in the order in which they were written.
	Entries []Entry
	// Origin is the position of the olm.channel object.
	Origin Origin
}

// Entry is the place of one bundle in a channel.
type Entry struct {
	// Name is the name of the bundle.
	Name string `json:"name"`
	// Replaces is the name of the bundle that this one upgrades from, which need not be in the
	// channel. It is empty at the end of the chain.
	Replaces string `json:"replaces"`
	// Skips are the names of bundles that an upgrade to this one passes over.
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
	// Properties are in the order in which they were written.
	Properties []Property
	// RelatedImages are in the order in which they were written.
	RelatedImages []RelatedImage
	// Origin is the position of the olm.bundle object.
	Origin Origin
}

// RelatedImage is an image that a bundle needs at run time.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// Property is a fact about a bundle, as raw JSON.
type Property struct {
	// Type determines the format of the value; see the Type constants.
	Type string `json:"type"`
	// Value is compact JSON with sorted keys.
	Value json.RawMessage `json:"value"`
}

// DeprecationList is one olm.deprecations object.
type DeprecationList struct {
	// Entries are in the order in which they were written.
	Entries []Deprecation
	// Origin is the position of the olm.deprecations object.
	Origin Origin
}

// Deprecation means that a package, a channel or a bundle should no longer be used.
type Deprecation struct {
	// Reference names the deprecated object.
	Reference Reference `json:"reference"`
	// Message states the reason and the alternative.
	Message string `json:"message"`
}

// Reference names an object within a package.
type Reference struct {
	// Schema is SchemaPackage, SchemaChannel or SchemaBundle.
	Schema string `json:"schema"`
	// Name is the name of the channel or bundle; empty for the package itself.
	Name string `json:"name"`
}

// Stray is an object that names a package the catalog does not declare.
type Stray struct {
	Schema  string
	Package string
	Name    string
	Origin  Origin
}

// Custom is an object of a schema that the catalog's author defined.
type Custom struct {
	Schema  string
	Package string
	Name    string
	// Blob is the whole object as compact JSON with sorted keys.
	Blob   json.RawMessage
	Origin Origin
}

// Deprecated returns the deprecation message of an object of the package, and whether there is one.
// It ignores the name for the package itself.
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
