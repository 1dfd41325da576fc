package golist

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		in     string
		want   []Package
	}{
		"Empty": {
			reason: "no packages match the pattern",
		},
		"WithoutTests": {
			reason: "a package without tests has no test dependencies",
			in:     `{"ImportPath":"m/a","Name":"a","Dir":"/m/a","Imports":["fmt"],"Deps":["fmt","io"]}`,
			want:   []Package{{ImportPath: "m/a", Dir: "/m/a", Imports: []string{"fmt"}, Deps: []string{"fmt", "io"}}},
		},
		"WithTests": {
			reason: "the test binary gives the test dependencies; variants compiled for it are left out",
			in: `{"ImportPath":"m/a","Name":"a","TestGoFiles":["a_test.go"],"XTestGoFiles":["x_test.go"]}
				{"ImportPath":"m/a.test","Name":"main","Deps":["m/a [m/a.test]","m/b"]}
				{"ImportPath":"m/a [m/a.test]","Name":"a","ForTest":"m/a"}`,
			want: []Package{{ImportPath: "m/a", TestFiles: []string{"a_test.go", "x_test.go"}, TestDeps: []string{"m/a", "m/b"}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decode(strings.NewReader(tc.in))
			if err != nil {
				t.Fatalf("%s: decode: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDecodeRefusesForeignOutput(t *testing.T) {
	t.Parallel()
	if _, err := decode(strings.NewReader("can't load package")); err == nil {
		t.Error("decode accepted text that is no JSON")
	}
}
