package installplan

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// caseMismatches returns the fields of a manifest whose names differ only in case from a field of the Go
// type. The keys are the paths in the manifest, in the notation of the API server; the values are
// the correct names. It returns nil for kinds that the scheme does not have.
func caseMismatches(scheme *runtime.Scheme, u *unstructured.Unstructured) map[string]string {
	typed, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil
	}
	found := map[string]string{}
	addCaseMismatches(reflect.TypeOf(typed), u.Object, "", found)
	return found
}

func addCaseMismatches(t reflect.Type, value any, path string, found map[string]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := value.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i, entry := range value {
			addCaseMismatches(t.Elem(), entry, fmt.Sprintf("%s[%d]", path, i), found)
		}
	case map[string]any:
		fields := map[string]reflect.Type{}
		if t.Kind() == reflect.Struct {
			fields = fieldsOf(t)
		}
		for key, entry := range value {
			at := strings.TrimPrefix(path+"."+key, ".")
			if field, exact := fields[key]; exact {
				addCaseMismatches(field, entry, at, found)
				continue
			}
			if t.Kind() == reflect.Map {
				addCaseMismatches(t.Elem(), entry, at, found)
			}
			for name := range fields {
				if strings.EqualFold(name, key) {
					found[at] = name
				}
			}
		}
	}
}

// fieldsOf returns the types of the fields of a struct by their JSON names.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			fields[name] = f.Type
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			maps.Copy(fields, fieldsOf(f.Type))
		}
	}
	return fields
}
