package server

import (
	"encoding"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
)

const (
	// modelPrefix begins the names of the types of this API in OpenAPI documents.
	modelPrefix = "com.coreos.operators.packages.v1."
	// generalPrefix begins those of the types of all APIs.
	generalPrefix = "io.k8s.apimachinery."
)

// descriptions are what "kubectl explain" prints first, by the name of the type.
var descriptions = map[string]string{
	"PackageManifest":     "A package of a catalog, with its channels and their versions.",
	"PackageManifestList": "The packages of the catalogs that a namespace can use.",
}

// definitions returns the OpenAPI definitions of the API: those of its types, from their fields and the tag doc, and
// those of the types of all APIs.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := openapi.GetOpenAPIDefinitions(ref)
	maps.DeleteFunc(all, func(name string, _ common.OpenAPIDefinition) bool { return !strings.HasPrefix(name, generalPrefix) })
	d := &definer{ref: ref, defined: all}
	d.reference(reflect.TypeFor[PackageManifestList]())
	return all
}

// definer defines types.
type definer struct {
	ref     common.ReferenceCallback
	defined map[string]common.OpenAPIDefinition
}

// reference returns the name of a struct, and defines it and the structs in it.
func (d *definer) reference(t reflect.Type) string {
	if t == reflect.TypeFor[Status]() {
		t = reflect.TypeFor[manifest.Status]()
	}
	named, is := reflect.TypeAssert[interface{ OpenAPIModelName() string }](reflect.Zero(t))
	if is && t.PkgPath() != reflect.TypeFor[PackageManifest]().PkgPath() {
		return named.OpenAPIModelName()
	}
	name := modelPrefix + t.Name()
	if _, known := d.defined[name]; known {
		return name
	}
	d.defined[name] = common.OpenAPIDefinition{}
	object := spec.Schema{SchemaProps: spec.SchemaProps{
		Description: descriptions[t.Name()], Type: []string{"object"}, Properties: map[string]spec.Schema{},
	}}
	used := map[string]bool{}
	d.fields(t, &object, used)
	d.defined[name] = common.OpenAPIDefinition{Schema: object, Dependencies: slices.Sorted(maps.Keys(used))}
	return name
}

// fields adds the fields of a struct to its schema, and the structs that they use to used.
func (d *definer) fields(t reflect.Type, object *spec.Schema, used map[string]bool) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			d.fields(field.Type, object, used)
			continue
		}
		property := d.property(field.Type, used)
		property.Description = describe(name, field)
		object.Properties[name] = property
		if options == "" && field.Type.Kind() != reflect.Struct {
			object.Required = append(object.Required, name)
		}
	}
}

// describe returns the description of a field.
func describe(name string, field reflect.StructField) string {
	switch name {
	case "apiVersion", "kind":
		return metav1.TypeMeta{}.SwaggerDoc()[name]
	case "metadata":
		return "Standard metadata."
	}
	return field.Tag.Get("doc")
}

// property returns the schema of the type of a field.
func (d *definer) property(t reflect.Type, used map[string]bool) spec.Schema {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return *spec.StringProperty()
	}
	switch t.Kind() {
	case reflect.Bool:
		return *spec.BoolProperty()
	case reflect.Pointer:
		return d.property(t.Elem(), used)
	case reflect.Slice:
		items := d.property(t.Elem(), used)
		return *spec.ArrayProperty(&items)
	case reflect.Map:
		values := d.property(t.Elem(), used)
		return *spec.MapProperty(&values)
	case reflect.Struct:
		name := d.reference(t)
		used[name] = true
		return spec.Schema{SchemaProps: spec.SchemaProps{Default: map[string]any{}, Ref: d.ref(name)}}
	default:
		return *spec.StringProperty()
	}
}
