package fbc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles"
)

// object is a document decoded according to its schema. Exactly one of the pointers is set.
type object struct {
	pkg          *bundles.Package
	channel      *bundles.Channel
	bundle       *bundles.Bundle
	deprecations *deprecations
	custom       *bundles.Custom
}

// deprecations is an olm.deprecations object before it is assigned to its package.
type deprecations struct {
	pkg  string
	list bundles.DeprecationList
}

// header holds the fields that every object has.
type header struct {
	schema, pkg, name string
}

// identify reads the header of a document. The problem has no file yet. The returned header, as far
// as it could be read, identifies the object.
func identify(fields map[string]any) (header, *bundles.Problem) {
	head, err := readHeader(fields)
	if err != nil {
		return header{}, &bundles.Problem{Message: err.Error(), Remedy: "correct the object's fields"}
	}
	return head, head.check()
}

// check returns a problem if a header does not identify the object.
func (h header) check() *bundles.Problem {
	if h.schema != "" {
		return nil
	}
	message := "an object is missing its schema field"
	if h.name != "" {
		message = fmt.Sprintf("object %s is missing its schema field", bundles.Quote(h.name))
	}
	return &bundles.Problem{
		Package: h.pkg, Message: message,
		Remedy: "set it to olm.package, olm.channel, olm.bundle, olm.deprecations or a schema of your own; " +
			"exclude files that are not part of the catalog by an .indexignore file",
	}
}

// decode turns the fields of a document into an object.
func decode(fields map[string]any, head header, origin bundles.Origin, maxDepth int) (object, error) {
	if deeper(fields, maxDepth) {
		return object{}, fmt.Errorf("%w: more than %d levels", errTooDeep, maxDepth)
	}
	blob, err := normalize(fields)
	if err != nil {
		return object{}, err
	}
	return decodeSchema(head, blob, origin)
}

var (
	errTooDeep   = errors.New("nested too deeply")
	errDuplicate = errors.New("duplicate keys")
	errNotString = errors.New("is not a string")
)

// problem names the object that an error is about.
func (h header) problem(err error) *bundles.Problem {
	p := &bundles.Problem{Package: h.pkg, Message: err.Error(), Remedy: "correct the " + h.schema + " object"}
	switch h.schema {
	case bundles.SchemaPackage:
		p.Package = h.name
	case bundles.SchemaChannel:
		p.Channel = h.name
	case bundles.SchemaBundle:
		p.Bundle = h.name
	}
	return p
}

// readHeader finds schema, package and name regardless of the case of their keys. Keys that differ
// only in case are an error, because different readers would use different ones.
func readHeader(fields map[string]any) (header, error) {
	var head header
	targets := map[string]*string{"schema": &head.schema, "package": &head.pkg, "name": &head.name}
	spellings := make(map[string][]string, len(fields))
	for key := range fields {
		folded := fold(key)
		spellings[folded] = append(spellings[folded], key)
	}
	var errs []error
	for folded, keys := range spellings {
		target := targets[folded]
		if len(keys) > 1 {
			slices.Sort(keys)
			errs = append(errs, fmt.Errorf("%w for key %q: %v", errDuplicate, folded, keys))
			continue
		}
		if target == nil {
			continue
		}
		text, ok := fields[keys[0]].(string)
		if !ok {
			errs = append(errs, fmt.Errorf("value of key %q %w", keys[0], errNotString))
			continue
		}
		*target = text
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return head, errors.Join(errs...)
}

// fold maps strings that differ only in case to one.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return unicode.ToLower(least)
	}, key)
}

// deeper reports whether a value is nested more than limit levels deep.
func deeper(value any, limit int) bool {
	if limit < 0 {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			if deeper(child, limit-1) {
				return true
			}
		}
	case []any:
		for _, child := range v {
			if deeper(child, limit-1) {
				return true
			}
		}
	}
	return false
}

// normalize encodes an object in the only form that other packages expect: compact, keys sorted,
// nothing escaped for HTML. Numbers have been converted to float64, as every consumer of catalogs
// does.
func normalize(fields map[string]any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		return nil, fmt.Errorf("encoding object: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func decodeSchema(head header, blob json.RawMessage, origin bundles.Origin) (object, error) {
	switch head.schema {
	case bundles.SchemaPackage:
		return decodePackage(blob, origin)
	case bundles.SchemaChannel:
		return decodeChannel(blob, origin)
	case bundles.SchemaBundle:
		return decodeBundle(blob, origin)
	case bundles.SchemaDeprecations:
		return decodeDeprecations(blob, origin)
	default:
		return object{custom: &bundles.Custom{
			Schema: head.schema, Package: head.pkg, Name: head.name, Blob: blob, Origin: origin,
		}}, nil
	}
}

func decodePackage(blob json.RawMessage, origin bundles.Origin) (object, error) {
	var in struct {
		Name           string             `json:"name"`
		DefaultChannel string             `json:"defaultChannel"`
		Icon           *bundles.Icon      `json:"icon"`
		Description    string             `json:"description"`
		Properties     []bundles.Property `json:"properties"`
	}
	if err := json.Unmarshal(blob, &in); err != nil {
		return object{}, fmt.Errorf("decoding package: %w", bundles.DescribeJSON(err))
	}
	return object{pkg: &bundles.Package{
		Name: in.Name, DefaultChannel: in.DefaultChannel, Icon: in.Icon, Description: in.Description, Origin: origin,
	}}, nil
}

func decodeChannel(blob json.RawMessage, origin bundles.Origin) (object, error) {
	var in struct {
		Name       string             `json:"name"`
		Package    string             `json:"package"`
		Entries    []bundles.Entry    `json:"entries"`
		Properties []bundles.Property `json:"properties"`
	}
	if err := json.Unmarshal(blob, &in); err != nil {
		return object{}, fmt.Errorf("decoding channel: %w", bundles.DescribeJSON(err))
	}
	return object{channel: &bundles.Channel{
		Name: in.Name, Package: in.Package, Entries: in.Entries, Origin: origin,
	}}, nil
}

func decodeBundle(blob json.RawMessage, origin bundles.Origin) (object, error) {
	var in struct {
		Name          string                 `json:"name"`
		Package       string                 `json:"package"`
		Image         string                 `json:"image"`
		Properties    []bundles.Property     `json:"properties"`
		RelatedImages []bundles.RelatedImage `json:"relatedImages"`
	}
	if err := json.Unmarshal(blob, &in); err != nil {
		return object{}, fmt.Errorf("decoding bundle: %w", bundles.DescribeJSON(err))
	}
	return object{bundle: &bundles.Bundle{
		Name: in.Name, Package: in.Package, Image: in.Image,
		Properties: in.Properties, RelatedImages: in.RelatedImages, Origin: origin,
	}}, nil
}

var errNotUTF8 = errors.New("manifest is not UTF-8 text")

// check returns the problems of an object beyond its shape. It may use the buffer.
func (o object) check(buffer *[]byte) error {
	if o.bundle == nil {
		return nil
	}
	return checkManifests(o.bundle.Properties, buffer)
}

// checkManifests checks that the inline manifests can be sent to clients as JSON. Validation
// reports values of the wrong shape.
func checkManifests(properties []bundles.Property, buffer *[]byte) error {
	var errs []error
	for i := range properties {
		if properties[i].Type != bundles.TypeBundleObject {
			continue
		}
		data, err := bundles.BundleObject(properties[i].Value).AppendData((*buffer)[:0])
		*buffer = data
		if err != nil {
			continue
		}
		if _, err := ManifestJSON(data); err != nil {
			errs = append(errs, fmt.Errorf("properties[%d] of type %q: %w", i, properties[i].Type, err))
		}
	}
	return errors.Join(errs...)
}

// ManifestJSON returns an inline manifest as JSON. It returns text that begins with a brace
// unchanged and converts other text from YAML.
func ManifestJSON(data []byte) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, errNotUTF8
	}
	if bytes.HasPrefix(bytes.TrimLeftFunc(data, unicode.IsSpace), []byte("{")) {
		return data, nil
	}
	if err := bearable(data); err != nil {
		return nil, fmt.Errorf("decoding manifest: %w", err)
	}
	out, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("decoding manifest: %w", err)
	}
	return out, nil
}

func decodeDeprecations(blob json.RawMessage, origin bundles.Origin) (object, error) {
	var in struct {
		Package string                `json:"package"`
		Entries []bundles.Deprecation `json:"entries"`
	}
	if err := json.Unmarshal(blob, &in); err != nil {
		return object{}, fmt.Errorf("decoding deprecations: %w", bundles.DescribeJSON(err))
	}
	return object{deprecations: &deprecations{
		pkg: in.Package, list: bundles.DeprecationList{Entries: in.Entries, Origin: origin},
	}}, nil
}
