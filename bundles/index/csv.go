package index

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/internal/jsontext"
)

const (
	csvKind       = "ClusterServiceVersion"
	csvAPIVersion = "operators.coreos.com/v1alpha1"
)

// iconJSON returns the icon of a package in the form of a ClusterServiceVersion, or nil.
func iconJSON(p *bundles.Package) []byte {
	if p.Icon == nil {
		return nil
	}
	out := appendString([]byte(`{"base64data":`), base64.StdEncoding.EncodeToString(p.Icon.Data))
	return append(appendString(append(out, `,"mediatype":`...), p.Icon.MediaType), '}')
}

// manifests returns a bundle's ClusterServiceVersion and all its manifests as JSON, each in
// consecutive parts. If the catalog has only the metadata of the ClusterServiceVersion, the
// manifest is synthesized from it and is the only one. The icon, from [iconJSON], is a part of its
// own. A manifest that is the ClusterServiceVersion consists of the same parts.
func manifests(
	p *bundles.Package, b *bundles.Bundle, facts *bundles.Facts, icon []byte,
) (csv [][]byte, objects [][][]byte, err error) {
	for i := range facts.Objects {
		data, err := facts.Objects[i].AppendData(nil)
		if err != nil {
			return nil, nil, fmt.Errorf("decoding manifest: %w", err)
		}
		object, err := fbc.ManifestJSON(data)
		if err != nil {
			return nil, nil, fmt.Errorf("converting manifest: %w", err)
		}
		parts := [][]byte{object}
		if csv == nil && isCSV(object) {
			csv = parts
		}
		objects = append(objects, parts)
	}
	if csv != nil || len(facts.CSVMetadata) != 1 {
		return csv, objects, nil
	}
	if csv, err = synthesize(p, b, facts, icon); err != nil {
		return nil, nil, err
	}
	if len(objects) == 0 {
		objects = [][][]byte{csv}
	}
	return csv, objects, nil
}

// isCSV reports whether a manifest is a ClusterServiceVersion. A manifest that is not JSON is none.
func isCSV(object []byte) bool {
	if !bytes.Contains(object, []byte(csvKind)) {
		return false
	}
	kind, ok := jsontext.TextField(object, "kind")
	if ok {
		return kind == csvKind
	}
	var head struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(object, &head) == nil && head.Kind == csvKind
}

// csvEncoders holds *bundles.CSVEncoder values.
var csvEncoders = sync.Pool{New: func() any { return new(bundles.CSVEncoder) }}

// synthesize returns a ClusterServiceVersion that is built from its metadata. The fields have the
// order of the API type, because clients see this text. The list of deployments is null, because
// clients write into the enclosing map and fail if it is missing.
func synthesize(p *bundles.Package, b *bundles.Bundle, facts *bundles.Facts, icon []byte) ([][]byte, error) {
	version, err := semver.Parse(facts.Packages[0].Version)
	if err != nil {
		return nil, fmt.Errorf("parsing version: %w", err)
	}
	encoder, _ := csvEncoders.Get().(*bundles.CSVEncoder)
	defer csvEncoders.Put(encoder)
	m, err := encoder.Encode(facts.CSVMetadata[0])
	if err != nil {
		return nil, fmt.Errorf("encoding ClusterServiceVersion: %w", err)
	}
	if m.Description == nil && p.Description != "" {
		m.Description = appendString(nil, p.Description)
	}
	before := csvHead(b, version.String(), &m)
	if icon == nil {
		return [][]byte{csvTail(before, b, &m)}, nil
	}
	before.out = append(before.out, `,"icon":[`...)
	return [][]byte{before.out, icon, csvTail(csvText{out: []byte("]")}, b, &m)}, nil
}

// csvHead returns everything before the icon.
func csvHead(b *bundles.Bundle, version string, m *bundles.EncodedCSVMetadata) csvText {
	var c csvText
	c.out = make([]byte, 0, csvSize(b, m))
	c.out = append(c.out, `{"kind":"`+csvKind+`","apiVersion":"`+csvAPIVersion+`","metadata":{`...)
	if b.Name != "" {
		c.out = appendString(append(c.out, `"name":`...), b.Name)
	}
	c.field(`"labels":`, m.Labels)
	c.field(`"annotations":`, m.Annotations)
	c.out = append(c.out, `},"spec":{"install":{"strategy":"deployment","spec":{"deployments":null}},"version":`...)
	c.out = appendString(c.out, version)
	c.field(`"maturity":`, m.Maturity)
	c.field(`"customresourcedefinitions":`, m.CustomResourceDefinitions)
	c.field(`"apiservicedefinitions":`, m.APIServiceDefinitions)
	c.field(`"nativeAPIs":`, m.NativeAPIs)
	c.field(`"minKubeVersion":`, m.MinKubeVersion)
	c.field(`"displayName":`, m.DisplayName)
	c.field(`"description":`, m.Description)
	c.field(`"keywords":`, m.Keywords)
	c.field(`"maintainers":`, m.Maintainers)
	c.field(`"provider":`, m.Provider)
	c.field(`"links":`, m.Links)
	return c
}

// csvTail appends everything after the icon.
func csvTail(c csvText, b *bundles.Bundle, m *bundles.EncodedCSVMetadata) []byte {
	c.field(`"installModes":`, m.InstallModes)
	c.out = append(c.out, `,"cleanup":{"enabled":false}`...)
	for i := range b.RelatedImages {
		if i == 0 {
			c.out = append(c.out, `,"relatedImages":[`...)
		} else {
			c.out = append(c.out, ',')
		}
		c.out = appendString(append(c.out, `{"name":`...), b.RelatedImages[i].Name)
		c.out = appendString(append(c.out, `,"image":`...), b.RelatedImages[i].Image)
		c.out = append(c.out, '}')
	}
	if len(b.RelatedImages) > 0 {
		c.out = append(c.out, ']')
	}
	return append(c.out, `},"status":{"cleanup":{}}}`...)
}

// csvSize returns the approximate length of the text before the icon.
func csvSize(b *bundles.Bundle, m *bundles.EncodedCSVMetadata) int {
	const fixed = 512
	return fixed + len(b.Name) + len(m.Labels) + len(m.Annotations) + len(m.Maturity) + len(m.CustomResourceDefinitions) +
		len(m.APIServiceDefinitions) + len(m.NativeAPIs) + len(m.MinKubeVersion) + len(m.DisplayName) +
		len(m.Description) + len(m.Keywords) + len(m.Maintainers) + len(m.Provider) + len(m.Links)
}

// csvText is a manifest under construction.
type csvText struct{ out []byte }

// field appends a field of the current object. It omits a nil value.
func (c *csvText) field(key string, value []byte) {
	if value == nil {
		return
	}
	if c.out[len(c.out)-1] != '{' {
		c.out = append(c.out, ',')
	}
	c.out = append(append(c.out, key...), value...)
}

// appendString appends a string in the encoding of encoding/json.
func appendString(out []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || strings.IndexByte(`"\<>&`, c) >= 0 {
			encoded, _ := json.Marshal(text) //nolint:errchkjson // a string can always be encoded
			return append(out, encoded...)
		}
	}
	return append(append(append(out, '"'), text...), '"')
}

// encodeJSON returns compact JSON in which nothing is escaped for HTML.
func encodeJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
