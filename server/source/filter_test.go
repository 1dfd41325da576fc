package source

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/bundles/selection"
)

// twoPackages has a package that requires another one.
const twoPackages = cached + `
{"schema":"olm.package","name":"q","defaultChannel":"c"}
{"schema":"olm.channel","package":"q","name":"c","entries":[{"name":"q.v1"},{"name":"q.v2","replaces":"q.v1"}]}
{"schema":"olm.bundle","package":"q","name":"q.v1","image":"example.org/q:1","properties":[
  {"type":"olm.package","value":{"packageName":"q","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"q","name":"q.v2","image":"example.org/q:2","properties":[
  {"type":"olm.package","value":{"packageName":"q","version":"2.0.0"}},
  {"type":"olm.package.required","value":{"packageName":"p","versionRange":">=1.0.0"}},
  {"type":"olm.gvk.required","value":{"group":"g","version":"v1","kind":"K"}}]}
`

func packageNames(x *index.Index) []string {
	var out []string
	for s := range x.Summaries() {
		out = append(out, s.Package)
	}
	return out
}

// TestFilter selects from each kind of source that supports selection.
func TestFilter(t *testing.T) {
	d := catalogDir(t)
	writeAt(t, filepath.Join(d.Path, "p.json"), twoPackages, time.Unix(1000, 0))
	var log bytes.Buffer
	for name, test := range map[string]struct {
		reason    string
		selection *selection.Selection
		want      []string
		bundles   int
	}{
		"Whole":        {"nothing is selected", nil, []string{"p", "q"}, 3},
		"Package":      {"one of two", &selection.Selection{Packages: []selection.Package{{Name: "q"}}}, []string{"q"}, 2},
		"Heads":        {"one bundle each", &selection.Selection{Heads: true}, []string{"p", "q"}, 2},
		"Dependencies": {"what it requires too", &selection.Selection{Packages: []selection.Package{{Name: "q", Heads: true}}, Dependencies: true}, []string{"p", "q"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := d
			d.Filter = Filter{Selection: test.selection, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			for range 2 { // built, and then found in the cache
				x := load(t, d)
				if got := packageNames(x); !slices.Equal(got, test.want) || x.Stats().Bundles != test.bundles {
					t.Errorf("%s: packages %v, %d bundles", test.reason, got, x.Stats().Bundles)
				}
				if same, err := d.Verify(t.Context(), x); err != nil || !same {
					t.Errorf("%s: the cached index is that of the directory: %v, %v", test.reason, same, err)
				}
			}
			file := filepath.Join(t.TempDir(), "index")
			info, err := d.Create(t.Context(), file)
			if err != nil || info.Bundles != test.bundles {
				t.Errorf("%s: %+v, %v", test.reason, info, err)
			}
			x, err := index.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			if recorded := len(x.Sources()) > 0; recorded != (test.selection == nil) {
				t.Errorf("%s: whether it is taken for the index of the directory: %v", test.reason, recorded)
			}
		})
	}
	entries, err := os.ReadDir(d.Cache.Dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("each selection is cached apart: %v, %v", entries, err)
	}
	for _, want := range []string{
		`msg="Added a dependency to the selection" package=p channel=c bundle=p.v1 requiredBy=q.v2`,
		`msg="Nothing in the catalog provides what a bundle requires" package=q bundle=q.v2 requirement="the API g/v1, Kind=K"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log lacks %s:\n%s", want, log.String())
		}
	}
}

func TestFilterConfigMap(t *testing.T) {
	m := mounted{t, t.TempDir()}
	m.update("1", keysOf("1.0.0"))
	c := ConfigMap{Path: m.dir, Filter: Filter{Selection: &selection.Selection{Packages: []selection.Package{{Name: "none"}}}}}
	if x, err := c.Load(t.Context()); err == nil || !strings.Contains(err.Error(), `package "none": the selection: the catalog has no such package`) {
		t.Errorf("got %v, %v", x, err)
	}
	c.Filter.Selection = &selection.Selection{Heads: true}
	x, err := c.Load(t.Context())
	if err != nil || x.Stats().Packages != 1 || x.Stats().Bundles != 1 {
		t.Errorf("got %v, %v", x, err)
	}
}
