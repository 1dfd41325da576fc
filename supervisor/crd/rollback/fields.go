package rollback

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Segments of a path that are not names of fields: each element of a list, each value of a map.
const (
	items  = "\x00[]"
	values = "\x00*"
)

// Field is a field in the objects of a definition that an older one does not have. Its value is dropped when
// the object is next read or written.
type Field struct {
	// Version is the version whose schema has the field.
	Version string
	path    []string
	// known are names beside it that the older schema has, if the path ends in the values of a map.
	known []string
}

// String returns the version and the path of the field.
func (f Field) String() string { return f.Version + " " + describe(f.path) }

// LostFields returns the fields that the schemas of an older definition of the bundle lack, sorted by served version
// and by path. It compares schemas of the same version. If objects will be stored in another version without a
// conversion webhook, it also compares the schema of that version. New writes then have to fit both.
func (b Bundle) LostFields(live, older *apiextensionsv1.CustomResourceDefinition) []Field {
	if older.Spec.PreserveUnknownFields {
		return nil
	}
	storage := b.otherStorage(live, older)
	var list []Field
	for i := range live.Spec.Versions {
		v := &live.Spec.Versions[i]
		if !v.Served || schemaOf(v) == nil {
			continue
		}
		known := map[string]bool{}
		for _, then := range []*apiextensionsv1.CustomResourceDefinitionVersion{versionOf(older, v.Name), storage} {
			if then == nil {
				continue
			}
			for _, f := range comparison(v.Name).compare(schemaOf(v), schemaOf(then), nil) {
				if !known[f.String()] {
					list = append(list, f)
				}
				known[f.String()] = true
			}
		}
	}
	return list
}

// otherStorage returns the version in which an older definition stores objects, if they are now stored in another
// one and no webhook converts them; nil otherwise.
func (b Bundle) otherStorage(live, older *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	now, then := storageOf(live), storageOf(older)
	if now == nil || then == nil || now.Name == then.Name || webhook(older) || b.converts(older.Name) {
		return nil
	}
	return then
}

func storageOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	if i < 0 {
		return nil
	}
	return &crd.Spec.Versions[i]
}

func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// comparison compares two schemas of a version, which it names.
type comparison string

// field returns a field that the older schema lacks, at a path below an object with other known names.
func (c comparison) field(path []string, known map[string]apiextensionsv1.JSONSchemaProps) Field {
	return Field{Version: string(c), path: slices.Clone(path), known: slices.Sorted(maps.Keys(known))}
}

// compare returns the fields below a path that the newer schema allows and the older one does not.
func (c comparison) compare(newer, older *apiextensionsv1.JSONSchemaProps, path []string) []Field {
	if older == nil {
		older = &apiextensionsv1.JSONSchemaProps{}
	}
	lost := c.compareProperties(newer, older, path)
	if newer.Items != nil && newer.Items.Schema != nil {
		var then *apiextensionsv1.JSONSchemaProps
		if older.Items != nil {
			then = older.Items.Schema
		}
		lost = append(lost, c.compare(newer.Items.Schema, then, append(slices.Clone(path), items))...)
	}
	if newer.AdditionalProperties != nil && newer.AdditionalProperties.Schema != nil {
		lost = append(lost, c.compareUnnamed(newer.AdditionalProperties.Schema, older, append(slices.Clone(path), values))...)
	}
	if preservesUnknownFields(newer) && !preservesUnknownFields(older) && older.AdditionalProperties == nil {
		lost = append(lost, c.field(append(slices.Clone(path), values), older.Properties))
	}
	return lost
}

// compareProperties compares named properties.
func (c comparison) compareProperties(newer, older *apiextensionsv1.JSONSchemaProps, path []string) []Field {
	var lost []Field
	for _, name := range slices.Sorted(maps.Keys(newer.Properties)) {
		if len(path) == 0 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		property, below := newer.Properties[name], append(slices.Clone(path), name)
		if then, known := older.Properties[name]; known {
			lost = append(lost, c.compare(&property, &then, below)...)
			continue
		}
		lost = append(lost, c.compareUnnamed(&property, older, below)...)
	}
	return lost
}

// compareUnnamed compares fields that the older schema does not name, where it may allow any value.
func (c comparison) compareUnnamed(newer, older *apiextensionsv1.JSONSchemaProps, path []string) []Field {
	switch {
	case older.AdditionalProperties != nil && older.AdditionalProperties.Schema != nil:
		return c.compare(newer, older.AdditionalProperties.Schema, path)
	case older.AdditionalProperties != nil && older.AdditionalProperties.Allows, preservesUnknownFields(older):
		return nil
	default:
		return []Field{c.field(path, older.Properties)}
	}
}

// preservesUnknownFields reports whether a schema preserves unnamed fields.
func preservesUnknownFields(s *apiextensionsv1.JSONSchemaProps) bool {
	return (s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields) ||
		(s.AdditionalProperties != nil && s.AdditionalProperties.Allows && s.AdditionalProperties.Schema == nil)
}

// UsedBy reports whether an object has a value in the field.
func (f Field) UsedBy(object map[string]any) bool { return f.used(object, f.path) }

func (f Field) used(value any, path []string) bool {
	if len(path) == 0 {
		return value != nil
	}
	switch v := value.(type) {
	case []any:
		return path[0] == items && slices.ContainsFunc(v, func(each any) bool { return f.used(each, path[1:]) })
	case map[string]any:
		if path[0] != values {
			below, has := v[path[0]]
			return has && f.used(below, path[1:])
		}
		for name, each := range v {
			if !slices.Contains(f.known, name) && f.used(each, path[1:]) {
				return true
			}
		}
	}
	return false
}
