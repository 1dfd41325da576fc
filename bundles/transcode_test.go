package bundles

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestZeroJSON compares zeroJSON with encoding/json, for every type in the metadata.
func TestZeroJSON(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		want, err := json.Marshal(reflect.Zero(of).Interface())
		if err != nil {
			t.Fatal(err)
		}
		if got := shapeOf(of).zeroJSON(); got != string(want) {
			t.Errorf("%s: got %s, want %s", of, got, want)
		}
		if of.Kind() == reflect.Slice {
			visit(of.Elem())
		}
		if of.Kind() == reflect.Struct {
			for field := range of.Fields() {
				visit(field.Type)
			}
		}
	}
	visit(reflect.TypeFor[CSVMetadata]())
	if len(seen) < 10 {
		t.Errorf("looked at %d types only", len(seen))
	}
}
