package configoverrides

import (
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/chandlery/chandlery/internal/similarnames"
)

// schemaText is the schema of the annotation. `make generate` derives it from the CustomResourceDefinitions.
//
//go:embed schema.json
var schemaText []byte

// annotationSchema decodes the schema when the first annotation is read. Most clusters have none.
var annotationSchema = sync.OnceValues(func() (*spec.Schema, error) {
	s := &spec.Schema{}
	if err := json.Unmarshal(schemaText, s); err != nil {
		return nil, fmt.Errorf("decoding the schema of the annotation: %w", err)
	}
	return s, nil
})

// schemaErrors returns the errors of a value at a path by a schema: first those of the value itself, then those of the
// values within it, in the order of their names.
func schemaErrors(path *field.Path, value any, s *spec.Schema) []error {
	if list := ownErrors(path, value, s); len(list) > 0 {
		return list
	}
	var list []error
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			list = append(list, fieldErrors(path, name, value[name], s)...)
		}
	case []any:
		for i, item := range value {
			list = append(list, schemaErrors(path.Index(i), item, s.Items.Schema)...)
		}
	}
	return list
}

// fieldErrors returns the errors of a field of an object, or of an entry of a map.
func fieldErrors(path *field.Path, name string, value any, s *spec.Schema) []error {
	if property, is := s.Properties[name]; is {
		return schemaErrors(path.Child(name), value, &property)
	}
	if s.AdditionalProperties != nil {
		return schemaErrors(path.Key(name), value, s.AdditionalProperties.Schema)
	}
	return []error{unknownField(path.Child(name), name, slices.Sorted(maps.Keys(s.Properties)))}
}

// unknownField returns the error about a field that the schema lacks, with the fields that it has.
func unknownField(path *field.Path, name string, fields []string) error {
	meant := ""
	if similar := similarnames.Of(name, fields); len(similar) > 0 {
		meant = fmt.Sprintf(" (did you mean %q?)", similar[0])
	}
	return fmt.Errorf("%s: unknown field%s; the fields are %s", path, meant, strings.Join(fields, ", "))
}

// ownErrors returns the errors of a value without those of the values within it.
func ownErrors(path *field.Path, value any, s *spec.Schema) []error {
	own := *s
	own.Properties, own.AdditionalProperties, own.Items = nil, nil, nil
	result := validate.NewSchemaValidator(&own, nil, "", strfmt.Default).Validate(value)
	var list []error
	for _, err := range result.Errors {
		problem, is := errors.AsType[*openapierrors.Validation](err)
		if !is || problem.Code() != openapierrors.RequiredFailCode {
			return []error{invalidValue(path, value, s)}
		}
		list = append(list, field.Required(path.Child(strings.TrimPrefix(problem.Name, ".")), ""))
	}
	return list
}

// invalidValue returns the error about a value that is not allowed.
func invalidValue(path *field.Path, value any, s *spec.Schema) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding the value of %s: %w", path, err)
	}
	const longest = 100
	if len(text) > longest {
		text = append(text[:longest:longest], "…"...)
	}
	if path == nil {
		return fmt.Errorf("it is %s and must be %s", text, allowed(s))
	}
	return fmt.Errorf("%s: Invalid value: %s: must be %s", path, text, allowed(s))
}

// allowed returns what a schema allows: its title, or a text about its type and limits.
func allowed(s *spec.Schema) string {
	switch {
	case s.Title != "":
		return s.Title
	case len(s.Enum) > 0:
		return fmt.Sprintf("one of %v", s.Enum)
	case s.Pattern != "":
		return "a string that matches " + s.Pattern
	case s.Type.Contains("boolean"):
		return "true or false"
	case s.Type.Contains("array"):
		return "a list"
	case s.Type.Contains("integer"):
		text := "an integer"
		if bits, is := strings.CutPrefix(s.Format, "int"); is {
			text = fmt.Sprintf("a %s-bit integer", bits)
		}
		if s.Minimum != nil {
			text += fmt.Sprintf(" of at least %v", *s.Minimum)
		}
		return text
	case s.Type.Contains("string"):
		return "a string"
	default:
		return "an object"
	}
}
