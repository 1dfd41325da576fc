package selection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles"
)

// MaxBytes is the largest size of a written selection, in bytes.
const MaxBytes = 1 << 20

var (
	errTooLarge = fmt.Errorf("the selection is larger than %d bytes", MaxBytes)
	errEmpty    = errors.New("the selection is empty: name packages, or set heads")
	errKind     = errors.New("the document is of another kind: write the fields of a selection, or an ImageSetConfiguration of mirror.openshift.io/v2alpha1")
)

// Parse reads a selection that is written in JSON or YAML, or an ImageSetConfiguration of
// mirror.openshift.io/v2alpha1. From the latter it uses the entry of mirror.operators for the
// reference catalog, or the only entry. Unknown fields are errors.
//
// The error is [bundles.Problems] for a selection that can be decoded but is invalid.
func Parse(text []byte, catalog string) (*Selection, error) {
	if len(text) > MaxBytes {
		return nil, errTooLarge
	}
	document, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("reading the selection: %w", err)
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, fmt.Errorf("reading the selection: %w", bundles.DescribeJSON(err))
	}
	var out *Selection
	switch {
	case head.APIVersion == imageSetVersion && head.Kind == imageSetKind:
		out, err = parseImageSet(document, catalog)
	case head.APIVersion == "" && head.Kind == "":
		out = &Selection{}
		err = decodeStrictly(document, out)
		if err == nil && out.IsZero() {
			err = errEmpty
		}
	default:
		err = fmt.Errorf("%w; found apiVersion %s, kind %s", errKind, bundles.Quote(head.APIVersion), bundles.Quote(head.Kind))
	}
	if err != nil {
		return nil, err
	}
	out = out.sorted()
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return out, nil
}

// decodeStrictly decodes a JSON text. An unknown field is an error.
func decodeStrictly(text []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		return fmt.Errorf("reading the selection: %w", bundles.DescribeJSON(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the selection: %w", bundles.ErrTextBehind)
	}
	return nil
}
