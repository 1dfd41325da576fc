package inputs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

func TestParseCatalogOverride(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a=b")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]CatalogOverride{
		"./catalog":            {Source: "./catalog"},
		"shop=./catalog":       {Name: "shop", Source: "./catalog"},
		"olm/shop=localhost:1": {Namespace: "olm", Name: "shop", Source: "localhost:1"},
		"shop=dir/with=sign":   {Name: "shop", Source: "dir/with=sign"},
		odd:                    {Source: odd},
	} {
		got, err := ParseCatalogOverride(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":            "names no source",
		"shop=":       "names no source",
		"=dir":        "cannot be the name of a CatalogSource",
		"Shop=dir":    "cannot be the name of a CatalogSource",
		"o lm/shop=d": "cannot be a namespace",
		"olm/=d":      "cannot be the name of a CatalogSource",
	} {
		if _, err := ParseCatalogOverride(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func TestParseCatalogOverrides(t *testing.T) {
	for _, texts := range [][]string{{"a=x", "a=y"}, {"x", "y"}, {"x", "a=y"}, {"olm/a=x", "olm/a=y"}} {
		if _, err := ParseCatalogOverrides(texts); err == nil {
			t.Errorf("%q: no error", texts)
		}
	}
	all, err := ParseCatalogOverrides([]string{"a=x", "olm/a=y", "b=z"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, key := range []resolution.CatalogKey{{Namespace: "olm", Name: "a"}, {Namespace: "shop", Name: "a"}, {Namespace: "olm", Name: "b"}, {Namespace: "olm", Name: "c"}} {
		g, _ := overrideFor(all, key)
		got[key.String()] = g.Source
	}
	if diff := cmp.Diff(map[string]string{"olm/a": "y", "shop/a": "x", "olm/b": "z", "olm/c": ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
