package fbc

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
)

func TestObjects(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{
		"a.json": {Data: []byte("{\"schema\":\"olm.package\",\"name\":\"p\",\"x\":1.50}\n\n{\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"p.v1\"}\n")},
		"b.yaml": {Data: []byte("---\nschema: olm.channel\npackage: p\nname: c # the only one\n---\nschema: own\nother: [1, {a: b}]\n")},
	}
	r, err := Open(t.Context(), root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cases := map[string]struct {
		reason string
		name   string
		keep   func(schema, name string) bool
		want   []Object
	}{
		"All": {
			reason: "every field is kept, and YAML is converted", name: "p",
			want: []Object{
				{Schema: "olm.package", Name: "p", Origin: bundles.Origin{File: "a.json", Line: 1}, JSON: json.RawMessage(`{"schema":"olm.package","name":"p","x":1.50}`)},
				{Schema: "olm.bundle", Package: "p", Name: "p.v1", Origin: bundles.Origin{File: "a.json", Line: 3}, JSON: json.RawMessage(`{"schema":"olm.bundle","package":"p","name":"p.v1"}`)},
				{Schema: "olm.channel", Package: "p", Name: "c", Origin: bundles.Origin{File: "b.yaml", Line: 2}, JSON: json.RawMessage(`{"name":"c","package":"p","schema":"olm.channel"}`)},
			},
		},
		"Some": {
			reason: "what is not wanted is not read", name: "p",
			keep: func(schema, name string) bool { return schema == "olm.bundle" && name == "p.v1" },
			want: []Object{
				{Schema: "olm.bundle", Package: "p", Name: "p.v1", Origin: bundles.Origin{File: "a.json", Line: 3}, JSON: json.RawMessage(`{"schema":"olm.bundle","package":"p","name":"p.v1"}`)},
			},
		},
		"NoPackage": {
			reason: "objects without a package have an empty name", name: "",
			want: []Object{{Schema: "own", Origin: bundles.Origin{File: "b.yaml", Line: 6}, JSON: json.RawMessage(`{"other":[1,{"a":"b"}],"schema":"own"}`)}},
		},
		"Unknown": {reason: "there is no such package", name: "q"},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := r.Objects(t.Context(), tt.name, tt.keep)
			if err != nil {
				t.Fatal(err)
			}
			same := cmp.Comparer(func(a, b json.RawMessage) bool { return equalJSON(t, a, b) })
			if diff := cmp.Diff(tt.want, got, same); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
		})
	}
}

func equalJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var left, right any
	if err := errors.Join(json.Unmarshal(a, &left), json.Unmarshal(b, &right)); err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(left, right)
}
