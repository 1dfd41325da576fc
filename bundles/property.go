package bundles

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The property types that have a meaning here. Values of other types only
// have to be JSON.
const (
	TypePackage         = "olm.package"
	TypePackageRequired = "olm.package.required"
	TypeGVK             = "olm.gvk"
	TypeGVKRequired     = "olm.gvk.required"
	TypeBundleObject    = "olm.bundle.object"
	TypeCSVMetadata     = "olm.csv.metadata"
	TypeChannel         = "olm.channel"
)

// GVK is the value of an olm.gvk or olm.gvk.required property: the identity of
// an API.
type GVK struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// String returns "group/version, Kind=kind".
func (g GVK) String() string {
	return g.Group + "/" + g.Version + ", Kind=" + g.Kind
}

// PackageProperty is the value of an olm.package property: which version of
// which package a bundle is.
type PackageProperty struct {
	PackageName string `json:"packageName"`
	// Version is a semantic version.
	Version string `json:"version"`
	// Release tells rebuilds of one version apart; mostly empty.
	Release string `json:"release,omitzero"`
}

// PackageRequired is the value of an olm.package.required property.
type PackageRequired struct {
	PackageName string `json:"packageName"`
	// VersionRange is in the grammar of github.com/blang/semver.
	VersionRange string `json:"versionRange"`
}

// BundleObject is the value of an olm.bundle.object property: one manifest.
type BundleObject struct {
	// Data is the manifest as JSON or YAML.
	Data []byte `json:"data"`
}

// channelProperty is only checked for its shape.
type channelProperty struct {
	ChannelName string `json:"channelName"`
	Priority    int    `json:"priority"`
}

// Facts are the properties of a bundle, decoded by type and in their order.
type Facts struct {
	Packages         []PackageProperty
	PackagesRequired []PackageRequired
	GVKs             []GVK
	GVKsRequired     []GVK
	Objects          []BundleObject
	CSVMetadata      []CSVMetadata
}

// PropertyError says which property of a bundle cannot be decoded.
type PropertyError struct {
	// Index counts from zero.
	Index int
	// Type of the property.
	Type string
	// Err says what is wrong with the value.
	Err error
}

// Error names the property and what is wrong with it.
func (e *PropertyError) Error() string {
	return fmt.Sprintf("properties[%d] of type %s: %v", e.Index, Quote(e.Type), e.Err)
}

// Unwrap returns what is wrong with the value.
func (e *PropertyError) Unwrap() error { return e.Err }

// PropertyErrors are all properties of a bundle that cannot be decoded.
type PropertyErrors []*PropertyError

// Error joins the errors on one line.
func (e PropertyErrors) Error() string {
	texts := make([]string, len(e))
	for i := range e {
		texts[i] = e[i].Error()
	}
	return strings.Join(texts, "; ")
}

// ParseProperties decodes properties by their types. The error is
// [PropertyErrors] for those that do not fit their types.
func ParseProperties(properties []Property) (*Facts, error) {
	facts, errs := parseProperties(properties)
	if len(errs) > 0 {
		return nil, errs
	}
	return facts, nil
}

// parseProperties returns the facts of the properties that can be decoded.
func parseProperties(properties []Property) (*Facts, PropertyErrors) {
	facts := &Facts{}
	var errs PropertyErrors
	for i := range properties {
		if err := facts.add(properties[i]); err != nil {
			errs = append(errs, &PropertyError{Index: i, Type: properties[i].Type, Err: err})
		}
	}
	return facts, errs
}

func (f *Facts) add(p Property) error {
	switch p.Type {
	case TypePackage:
		return appendValue(&f.Packages, p.Value)
	case TypePackageRequired:
		return appendValue(&f.PackagesRequired, p.Value)
	case TypeGVK:
		return appendValue(&f.GVKs, p.Value)
	case TypeGVKRequired:
		return appendValue(&f.GVKsRequired, p.Value)
	case TypeBundleObject:
		return appendValue(&f.Objects, p.Value)
	case TypeCSVMetadata:
		return appendValue(&f.CSVMetadata, p.Value)
	case TypeChannel:
		return appendValue(new([]channelProperty), p.Value)
	default:
		return appendValue(new([]json.RawMessage), p.Value)
	}
}

func appendValue[T any](to *[]T, raw json.RawMessage) error {
	var value T
	if len(raw) == 0 {
		return errNoValue
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("decoding value: %w", DescribeJSON(err))
	}
	*to = append(*to, value)
	return nil
}
