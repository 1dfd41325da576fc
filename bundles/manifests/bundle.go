package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
)

const (
	csvKind    = "ClusterServiceVersion"
	csvGroup   = "operators.coreos.com"
	csvVersion = csvGroup + "/v1alpha1"
	// skipRangeAnnotation holds the range of versions that a CSV may replace directly.
	// propertiesAnnotation holds further properties of its bundle.
	skipRangeAnnotation  = "olm.skipRange"
	propertiesAnnotation = "olm.properties"
)

// csv holds the fields used of a ClusterServiceVersion.
type csv struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Version  string   `json:"version"`
		Replaces string   `json:"replaces"`
		Skips    []string `json:"skips"`
		CRDs     struct {
			Owned    []crdKey `json:"owned"`
			Required []crdKey `json:"required"`
		} `json:"customresourcedefinitions"`
		APIServices struct {
			Owned    []bundles.GVK `json:"owned"`
			Required []bundles.GVK `json:"required"`
		} `json:"apiservicedefinitions"`
		RelatedImages []bundles.RelatedImage `json:"relatedImages"`
	} `json:"spec"`
}

// crdKey identifies one version of a custom resource definition.
type crdKey struct {
	// Name is the name of the definition: plural and group.
	Name    string `json:"name"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

var (
	errNoName   = errors.New("metadata.name is missing")
	errCRDName  = errors.New("is not of the form plural.group")
	errNotValid = errors.New("is not valid")
)

func (k *crdKey) gvk() (bundles.GVK, error) {
	_, group, ok := strings.Cut(k.Name, ".")
	if !ok {
		return bundles.GVK{}, fmt.Errorf("custom resource definition name %s %w", bundles.Quote(k.Name), errCRDName)
	}
	return bundles.GVK{Group: group, Version: k.Version, Kind: k.Kind}, nil
}

// decodeCSV decodes a ClusterServiceVersion.
func decodeCSV(text json.RawMessage) (*csv, error) {
	var out csv
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("decoding: %w", bundles.DescribeJSON(err))
	}
	if out.Metadata.Name == "" {
		return nil, errNoName
	}
	return &out, nil
}

// Bundle returns the bundle of a package that consists of a ClusterServiceVersion and other
// objects, each as JSON. Its properties are the version of the package, the provided and required
// APIs, and those in the annotation olm.properties. Its manifests are inline, the
// ClusterServiceVersion first.
func Bundle(packageName string, csvText json.RawMessage, others ...json.RawMessage) (*bundles.Bundle, error) {
	c, err := decodeCSV(csvText)
	if err != nil {
		return nil, err
	}
	return c.bundle(packageName, csvText, others)
}

func (c *csv) bundle(packageName string, text json.RawMessage, others []json.RawMessage) (*bundles.Bundle, error) {
	out := &bundles.Bundle{Name: c.Metadata.Name, Package: packageName}
	var list propertyList
	list.add(bundles.TypePackage, bundles.PackageProperty{PackageName: packageName, Version: c.Spec.Version})
	owned, err := apis(c.Spec.CRDs.Owned, c.Spec.APIServices.Owned)
	if err != nil {
		return nil, fmt.Errorf("spec.customresourcedefinitions.owned: %w", err)
	}
	for _, api := range owned {
		list.add(bundles.TypeGVK, api)
	}
	required, err := apis(c.Spec.CRDs.Required, c.Spec.APIServices.Required)
	if err != nil {
		return nil, fmt.Errorf("spec.customresourcedefinitions.required: %w", err)
	}
	for _, api := range required {
		list.add(bundles.TypeGVKRequired, api)
	}
	if err := list.addAnnotated(c.Metadata.Annotations[propertiesAnnotation]); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", propertiesAnnotation, err)
	}
	list.add(bundles.TypeBundleObject, object{Data: text})
	for _, other := range others {
		list.add(bundles.TypeBundleObject, object{Data: other})
	}
	if list.err != nil {
		return nil, list.err
	}
	out.Properties = list.properties
	for _, related := range c.Spec.RelatedImages {
		if !slices.Contains(out.RelatedImages, related) {
			out.RelatedImages = append(out.RelatedImages, related)
		}
	}
	return out, nil
}

// apis returns the APIs of definitions and services, each once.
func apis(definitions []crdKey, services []bundles.GVK) ([]bundles.GVK, error) {
	var out []bundles.GVK
	for i := range definitions {
		api, err := definitions[i].gvk()
		if err != nil {
			return nil, err
		}
		out = append(out, api)
	}
	out = append(out, services...)
	seen := make(map[bundles.GVK]bool, len(out))
	return slices.DeleteFunc(out, func(api bundles.GVK) bool {
		again := seen[api]
		seen[api] = true
		return again
	}), nil
}

// entry returns the entry of the CSV in a channel.
func (c *csv) entry() bundles.Entry {
	return bundles.Entry{
		Name: c.Metadata.Name, Replaces: c.Spec.Replaces,
		// A version that skips itself is still the head of its channel.
		Skips:     slices.DeleteFunc(slices.Clone(c.Spec.Skips), func(name string) bool { return name == c.Metadata.Name }),
		SkipRange: c.Metadata.Annotations[skipRangeAnnotation],
	}
}

// object is the value of an olm.bundle.object property.
type object struct {
	Data []byte `json:"data"`
}

// propertyList collects properties and the first error.
type propertyList struct {
	properties []bundles.Property
	err        error
}

func (l *propertyList) add(kind string, value any) {
	text, err := encode(value)
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("encoding property %s: %w", kind, err)
	}
	l.properties = append(l.properties, bundles.Property{Type: kind, Value: text})
}

// addAnnotated adds a list of properties in JSON.
func (l *propertyList) addAnnotated(text string) error {
	if text == "" {
		return nil
	}
	var list []bundles.Property
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return fmt.Errorf("%w: %w", errNotValid, bundles.DescribeJSON(err))
	}
	for _, p := range list {
		// The CSV defines these properties, so do not add them again.
		if p.Type == bundles.TypePackage || p.Type == bundles.TypeBundleObject {
			continue
		}
		var value any
		if err := json.Unmarshal(p.Value, &value); err != nil {
			return fmt.Errorf("%w: property %s: %w", errNotValid, bundles.Quote(p.Type), err)
		}
		l.add(p.Type, value)
	}
	return nil
}

// encode returns compact JSON in which nothing is escaped for HTML.
func encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err //nolint:wrapcheck // the caller says what was encoded
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
