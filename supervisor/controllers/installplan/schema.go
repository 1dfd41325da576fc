package installplan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// droppedVersion returns a version in which objects are stored and that a new definition lacks;
// empty when there is none.
func droppedVersion(before, after *apiextensionsv1.CustomResourceDefinition) string {
	for _, stored := range before.Status.StoredVersions {
		if !slices.ContainsFunc(after.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			return stored
		}
	}
	return ""
}

// changedVersions returns the versions that both definitions serve and whose schemas differ.
// Objects stay valid by an equal schema.
func changedVersions(before, after *apiextensionsv1.CustomResourceDefinition) []apiextensionsv1.CustomResourceDefinitionVersion {
	var list []apiextensionsv1.CustomResourceDefinitionVersion
	for _, now := range after.Spec.Versions {
		i := slices.IndexFunc(before.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == now.Name })
		if i < 0 || !now.Served || !before.Spec.Versions[i].Served || equality.Semantic.DeepEqual(before.Spec.Versions[i].Schema, now.Schema) {
			continue
		}
		list = append(list, now)
	}
	return list
}

// validator checks objects against the schema of one version of a definition.
type validator struct {
	schema  *spec.Schema
	objects *validate.SchemaValidator
}

// newValidator returns a validator for the schema of a version. It does not evaluate CEL rules: the
// API server does not apply them to unchanged values in an update.
func newValidator(version apiextensionsv1.CustomResourceDefinitionVersion) (*validator, error) {
	s := &spec.Schema{}
	if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
		text, err := json.Marshal(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("encoding it: %w", err)
		}
		if err := json.Unmarshal(text, s); err != nil {
			return nil, fmt.Errorf("decoding it: %w", err)
		}
	}
	visit(s, func(s *spec.Schema) {
		if either, ok := s.Extensions["x-kubernetes-int-or-string"].(bool); ok && either {
			s.Type = spec.StringOrArray{"integer", "string"}
		}
	})
	return &validator{schema: s, objects: validate.NewSchemaValidator(s, nil, "", strfmt.Default)}, nil
}

// problem returns the validation errors of an object; empty when it is valid. It first sets the
// defaults of the schema in the object.
func (v *validator) problem(object map[string]any) string {
	fillDefaults(object, v.schema)
	result := v.objects.Validate(object)
	if result.IsValid() {
		return ""
	}
	texts := make([]string, 0, len(result.Errors))
	for _, err := range result.Errors {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ", ")
}

// visit calls a function for a schema and all its subschemas.
func visit(s *spec.Schema, do func(*spec.Schema)) {
	if s == nil {
		return
	}
	do(s)
	for name, property := range s.Properties {
		visit(&property, do)
		s.Properties[name] = property
	}
	if s.AdditionalProperties != nil {
		visit(s.AdditionalProperties.Schema, do)
	}
	if s.Items != nil {
		visit(s.Items.Schema, do)
	}
	for _, list := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			visit(&list[i], do)
		}
	}
	visit(s.Not, do)
}

// fillDefaults sets defaults in a value, as the API server does on reads.
func fillDefaults(value any, s *spec.Schema) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			if _, has := v[name]; !has && property.Default != nil {
				v[name] = runtime.DeepCopyJSONValue(wholeNumbers(property.Default))
			}
			fillDefaults(v[name], &property)
		}
		if s.AdditionalProperties == nil {
			return
		}
		for name, each := range v {
			if _, has := s.Properties[name]; !has {
				fillDefaults(each, s.AdditionalProperties.Schema)
			}
		}
	case []any:
		if s.Items == nil {
			return
		}
		for _, each := range v {
			fillDefaults(each, s.Items.Schema)
		}
	}
}

// wholeNumbers returns a value with numbers without a fraction as int64, as in objects that the API server
// returns.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, each := range v {
			v[key] = wholeNumbers(each)
		}
	case []any:
		for i, each := range v {
			v[i] = wholeNumbers(each)
		}
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	}
	return value
}
