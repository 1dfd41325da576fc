package bundles

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles/internal/jsontext"
)

// The property types with a defined meaning. Values of other types only have to be JSON.
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
	// Release distinguishes rebuilds of one version; usually empty.
	Release string `json:"release,omitzero"`
}

// PackageRequired is the value of an olm.package.required property.
type PackageRequired struct {
	PackageName string `json:"packageName"`
	// VersionRange is in the grammar of github.com/blang/semver.
	VersionRange string `json:"versionRange"`
}

// BundleObject is the value of an olm.bundle.object property, one manifest, as JSON with a checked shape.
type BundleObject json.RawMessage

// bundleObject is the decoded form of a BundleObject.
type bundleObject struct {
	Data []byte `json:"data"`
}

// AppendData appends the manifest, which is JSON or YAML, to a buffer.
func (o BundleObject) AppendData(buffer []byte) ([]byte, error) {
	if data, ok := o.plain(); ok {
		begin := len(buffer)
		if out, err := base64.StdEncoding.AppendDecode(buffer, data); err == nil {
			return out, nil
		}
		buffer = buffer[:begin]
	}
	var value bundleObject
	if err := json.Unmarshal(o, &value); err != nil {
		return buffer, fmt.Errorf("decoding value: %w", DescribeJSON(err))
	}
	return append(buffer, value.Data...), nil
}

const (
	objectPrefix = `{"data":"`
	objectSuffix = `"}`
)

// plain returns the base64 text of a value in the usual form. If that text can be decoded, the result is correct.
func (o BundleObject) plain() ([]byte, bool) {
	data, before := bytes.CutPrefix(o, []byte(objectPrefix))
	data, behind := bytes.CutSuffix(data, []byte(objectSuffix))
	// The decoder would ignore line ends, which JSON does not allow.
	return data, before && behind && bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0
}

// check returns an error if the value has the wrong shape.
func (o BundleObject) check() error {
	if data, ok := o.plain(); ok && isBase64(data) {
		return nil
	}
	_, err := o.AppendData(nil)
	return err
}

// isBase64 reports whether a text without line ends can be decoded. It decodes the text in pieces
// and discards the result.
func isBase64(text []byte) bool {
	var ignored [3 << 10]byte
	const piece = 4 << 10
	for len(text) > piece {
		// Only the last piece may have padding.
		if n, err := base64.StdEncoding.Decode(ignored[:], text[:piece]); err != nil || n < len(ignored) {
			return false
		}
		text = text[piece:]
	}
	_, err := base64.StdEncoding.Decode(ignored[:], text)
	return err == nil
}

// channelProperty is only checked for its shape.
type channelProperty struct {
	ChannelName string `json:"channelName"`
	Priority    int    `json:"priority"`
}

// Facts are the properties of a bundle by type and in their order. Large properties are not
// decoded, but their shape is checked.
type Facts struct {
	Packages         []PackageProperty
	PackagesRequired []PackageRequired
	GVKs             []GVK
	GVKsRequired     []GVK
	Objects          []BundleObject
	CSVMetadata      []RawCSVMetadata

	// checked is set if the shape of large properties is known to be right.
	checked bool
}

// PropertyError is the error of a property that cannot be decoded.
type PropertyError struct {
	// Index is the index of the property, from zero.
	Index int
	// Type is the type of the property.
	Type string
	// Err is the cause.
	Err error
}

// Error returns the name of the property and the cause.
func (e *PropertyError) Error() string {
	return fmt.Sprintf("properties[%d] of type %s: %v", e.Index, Quote(e.Type), e.Err)
}

// Unwrap returns the cause.
func (e *PropertyError) Unwrap() error { return e.Err }

// PropertyErrors are the errors of all properties of a bundle that cannot be decoded.
type PropertyErrors []*PropertyError

// Error joins the errors on one line.
func (e PropertyErrors) Error() string {
	texts := make([]string, len(e))
	for i := range e {
		texts[i] = e[i].Error()
	}
	return strings.Join(texts, "; ")
}

// ParseProperties decodes properties by their types. The error is [PropertyErrors].
func ParseProperties(properties []Property) (*Facts, error) {
	facts, errs := parseProperties(properties)
	if len(errs) > 0 {
		return nil, errs
	}
	return facts, nil
}

// ParseCheckedProperties is [ParseProperties] for properties that validation has accepted. It does
// not check the large ones again.
func ParseCheckedProperties(properties []Property) (*Facts, error) {
	facts := &Facts{checked: true}
	if errs := facts.parse(properties); len(errs) > 0 {
		return nil, errs
	}
	return facts, nil
}

// parseProperties returns the facts of the properties that can be decoded.
func parseProperties(properties []Property) (*Facts, PropertyErrors) {
	facts := &Facts{}
	errs := facts.parse(properties)
	return facts, errs
}

// parse adds properties and returns those that cannot be decoded.
func (f *Facts) parse(properties []Property) PropertyErrors {
	var errs PropertyErrors
	for i := range properties {
		if err := f.add(properties[i]); err != nil {
			errs = append(errs, &PropertyError{Index: i, Type: properties[i].Type, Err: err})
		}
	}
	return errs
}

func (f *Facts) add(p Property) error {
	if len(p.Value) == 0 {
		return errNoValue
	}
	switch p.Type {
	case TypePackage:
		return appendValue(&f.Packages, p.Value, func(v *PackageProperty) bool {
			return stringFields(p.Value, packageNames, &v.PackageName, &v.Version, &v.Release)
		})
	case TypePackageRequired:
		return appendValue(&f.PackagesRequired, p.Value, func(v *PackageRequired) bool {
			return stringFields(p.Value, requiredNames, &v.PackageName, &v.VersionRange)
		})
	case TypeGVK:
		return appendGVK(&f.GVKs, p.Value)
	case TypeGVKRequired:
		return appendGVK(&f.GVKsRequired, p.Value)
	case TypeBundleObject:
		return appendChecked(&f.Objects, BundleObject(p.Value), f.checked, BundleObject.check)
	case TypeCSVMetadata:
		return appendChecked(&f.CSVMetadata, RawCSVMetadata(p.Value), f.checked, RawCSVMetadata.check)
	case TypeChannel:
		return appendValue(new([]channelProperty), p.Value, func(*channelProperty) bool { return false })
	default:
		return appendValue(new([]json.RawMessage), p.Value, func(*json.RawMessage) bool { return jsontext.Valid(p.Value) })
	}
}

// appendChecked appends a value unless it has the wrong shape.
func appendChecked[T any](to *[]T, value T, checked bool, check func(T) error) error {
	if !checked {
		if err := check(value); err != nil {
			return err
		}
	}
	*to = append(*to, value)
	return nil
}

func appendGVK(to *[]GVK, raw json.RawMessage) error {
	return appendValue(to, raw, func(v *GVK) bool {
		return stringFields(raw, gvkNames, &v.Group, &v.Kind, &v.Version)
	})
}

var (
	packageNames  = []string{"packageName", "version", "release"}
	requiredNames = []string{"packageName", "versionRange"}
	gvkNames      = []string{"group", "kind", "version"}
)

// appendValue decodes a value with quickly, if possible, and otherwise with encoding/json, which
// also returns the error.
func appendValue[T any](to *[]T, raw json.RawMessage, quickly func(*T) bool) error {
	var value T
	if !quickly(&value) {
		value = *new(T)
		if err := json.Unmarshal(raw, &value); err != nil {
			return fmt.Errorf("decoding value: %w", DescribeJSON(err))
		}
	}
	*to = append(*to, value)
	return nil
}

// stringFields decodes an object whose fields are all strings without escapes, and reports whether it could.
func stringFields(text []byte, names []string, to ...*string) bool {
	i := jsontext.ObjectStart(text)
	if i == jsontext.Broken || !utf8.Valid(text) {
		return false
	}
	seen := 0
	for closed := false; !closed; {
		keyEnd, value := jsontext.KeyEnd(text, i)
		if keyEnd == jsontext.Broken || value >= len(text) || text[value] != '"' {
			return false
		}
		field := jsontext.Find(names, text[i+1:keyEnd-1])
		end := jsontext.StringEnd(text, value)
		if field < 0 || seen&(1<<field) != 0 || end == jsontext.Broken {
			return false
		}
		seen |= 1 << field
		inner, plain := jsontext.PlainString(text[value:end])
		if !plain {
			return false
		}
		*to[field] = string(inner)
		if i, closed = jsontext.Next(text, end, '}'); i == jsontext.Broken {
			return false
		}
	}
	return jsontext.SkipSpace(text, i+1) == len(text)
}
