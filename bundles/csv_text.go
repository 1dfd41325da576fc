package bundles

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles/internal/jsontext"
)

// RawCSVMetadata is the value of an olm.csv.metadata property as JSON, with a checked shape.
type RawCSVMetadata json.RawMessage

// Decode returns the metadata.
func (m RawCSVMetadata) Decode() (*CSVMetadata, error) {
	var out CSVMetadata
	if err := json.Unmarshal(m, &out); err != nil {
		return nil, fmt.Errorf("decoding value: %w", DescribeJSON(err))
	}
	return &out, nil
}

// EncodedCSVMetadata holds each field of a [CSVMetadata] in the encoding of encoding/json. Fields
// without content are nil, except those that a ClusterServiceVersion requires: empty objects and
// strings.
type EncodedCSVMetadata struct {
	Annotations               []byte
	APIServiceDefinitions     []byte
	CustomResourceDefinitions []byte
	Description               []byte
	DisplayName               []byte
	InstallModes              []byte
	Keywords                  []byte
	Labels                    []byte
	Links                     []byte
	Maintainers               []byte
	Maturity                  []byte
	MinKubeVersion            []byte
	NativeAPIs                []byte
	Provider                  []byte
}

// fields returns pointers to the fields, in the order of [CSVMetadata].
func (e *EncodedCSVMetadata) fields() []*[]byte {
	return []*[]byte{
		&e.Annotations, &e.APIServiceDefinitions, &e.CustomResourceDefinitions, &e.Description, &e.DisplayName,
		&e.InstallModes, &e.Keywords, &e.Labels, &e.Links, &e.Maintainers, &e.Maturity, &e.MinKubeVersion,
		&e.NativeAPIs, &e.Provider,
	}
}

func (e *EncodedCSVMetadata) complete() {
	for field, empty := range map[*[]byte]string{
		&e.APIServiceDefinitions: "{}", &e.CustomResourceDefinitions: "{}", &e.Provider: "{}", &e.DisplayName: `""`,
	} {
		if *field == nil {
			*field = []byte(empty)
		}
	}
}

// CSVEncoder encodes metadata repeatedly with few allocations. It is not safe for concurrent use.
type CSVEncoder struct {
	out, ordered []byte
	members      []textMember
}

// Encode returns the metadata's fields. They are valid until the encoder is
// used again.
func (c *CSVEncoder) Encode(m RawCSVMetadata) (EncodedCSVMetadata, error) {
	if out, ok := c.transcode(m); ok {
		return out, nil
	}
	return encodeDecoded(m)
}

// encodeDecoded encodes the fields by decoding the metadata.
func encodeDecoded(m RawCSVMetadata) (EncodedCSVMetadata, error) {
	var out EncodedCSVMetadata
	decoded, err := m.Decode()
	if err != nil {
		return out, err
	}
	to := out.fields()
	value := reflect.ValueOf(*decoded)
	for i, field := range csvMetadataShape.fields {
		if field.optional && isEmpty(value.Field(i)) {
			continue
		}
		if *to[i], err = json.Marshal(value.Field(i).Interface()); err != nil {
			return out, fmt.Errorf("encoding field %q: %w", field.name, err)
		}
	}
	out.complete()
	return out, nil
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// transcode encodes the fields without decoding them, if possible.
func (c *CSVEncoder) transcode(m RawCSVMetadata) (EncodedCSVMetadata, bool) {
	var out EncodedCSVMetadata
	if !utf8.Valid(m) {
		return out, false
	}
	// Most of the text does not change.
	c.out = slices.Grow(c.out[:0], len(m)+len(m)/8)
	t := transcoder{text: m, out: c.out, ordered: c.ordered[:0], members: c.members[:0]}
	i, ok := t.fields(jsontext.SkipSpace(m, 0), csvMetadataShape)
	c.out, c.ordered, c.members = t.out, t.ordered, t.members
	if !ok || jsontext.SkipSpace(m, i) != len(m) {
		return out, false
	}
	to := out.fields()
	for _, found := range t.members {
		*to[found.field] = t.out[found.value:found.end:found.end]
	}
	out.complete()
	return out, true
}

// csvCheckers are the transcoders that validation uses.
var csvCheckers = sync.Pool{New: func() any { return new(transcoder) }}

// check returns an error if the value has the wrong shape.
func (m RawCSVMetadata) check() error {
	t, _ := csvCheckers.Get().(*transcoder)
	defer csvCheckers.Put(t)
	*t = transcoder{text: m, checking: true, out: t.out[:0], members: t.members[:0]}
	end, ok := t.fields(jsontext.SkipSpace(m, 0), csvMetadataShape)
	t.text = nil
	if ok && jsontext.SkipSpace(m, end) == len(m) {
		return nil
	}
	_, err := m.Decode()
	return err
}
