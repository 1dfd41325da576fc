package dryrun

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

var update = flag.Bool("update", false, "write the golden files")

// rich returns a result that has an entry of each type.
func rich(t *testing.T) *Result {
	t.Helper()
	r := request(t,
		sub("my-lamp", "lamp", has("lamp.v1.0.0")), sub("my-radio", "radio"), sub("my-clock", "clock"), sub("my-mill", "mill"),
		sub("other", "battery-pack\x1b[31m", func(s *resolution.Subscription) { s.Catalog.Name = "dead" }),
	)
	r.Manual = map[string]bool{"my-lamp": true}
	r.Input.Catalogs[resolution.CatalogKey{Namespace: "olm", Name: "dead"}] = resolution.Catalog{Err: errors.New("nothing answers at dead.olm.svc:50051")}
	r.Catalogs = map[resolution.CatalogKey]string{shop: "./catalog"}
	r.Notes = []string{"shop.yaml: ignored ConfigMap x"}
	f, err := Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGolden(t *testing.T) {
	for name, render := range map[string]func(*Result) string{
		"rich.txt": func(f *Result) string {
			var b strings.Builder
			if err := f.Table(&b); err != nil {
				t.Fatal(err)
			}
			return b.String()
		},
		"rich.json": func(f *Result) string {
			text, err := json.MarshalIndent(f, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			return string(text) + "\n"
		},
		"rich.mmd": func(f *Result) string { return f.Diagram().Mermaid() },
		"rich.dot": func(f *Result) string { return f.Diagram().DOT() },
		"rich.svg": func(f *Result) string { return f.Diagram().SVG() },
	} {
		t.Run(name, func(t *testing.T) {
			got := render(rich(t))
			golden := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; run the test with -update", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTableFits(t *testing.T) {
	var b strings.Builder
	if err := rich(t).Table(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%d characters: %s", n, line)
		}
		if strings.ContainsRune(line, '\x1b') {
			t.Errorf("a terminal would act on %q", line)
		}
	}
}

func TestImagesInTable(t *testing.T) {
	res := &Result{Namespace: "shop", Images: []Image{
		{Reference: "a.test/a:1", Kinds: []ImageKind{BundleImage}, Bundles: []string{"lamp.v1"}, Check: &ImageCheck{Available: true, Source: "a.test/a:1"}},
		{Reference: "b.test/b:1", Kinds: []ImageKind{OperatorImage, RelatedImage}, Bundles: []string{"lamp.v1", "lamp.v2"}, Check: &ImageCheck{Available: true, Source: "m.test/b:1"}},
		{Reference: "c.test/c:1", Kinds: []ImageKind{RelatedImage}, Bundles: []string{"lamp.v2"}, Check: &ImageCheck{
			Reason: "NotFound", Remedy: "copy the image to the mirror",
			Tried:    []TriedPlace{{Place: "m.test/c:1", Rule: "rule 1", Reason: "NotFound", Message: "404"}, {Place: "n.test/c:1", Reason: "NotFound", Message: "gone"}},
			NotAsked: []ExcludedPlace{{Place: "c.test/c:1", Rule: "rule 2", Why: "it is blocked"}},
		}},
		{Reference: "d", Kinds: []ImageKind{RelatedImage}, Bundles: []string{"lamp.v2"}, Check: &ImageCheck{Reason: "BadReference", Message: "no image"}},
		{Reference: "e.test/e:1", Kinds: []ImageKind{BundleImage}, Bundles: []string{"lamp.v3"}, NotChecked: "only nodes may pull it"},
	}}
	var b strings.Builder
	if err := res.Table(&b); err != nil {
		t.Fatal(err)
	}
	const want = `Namespace shop: nothing to install

IMAGES: 2 of 4 available
  a.test/a:1 (bundle of lamp.v1)
  b.test/b:1 (operator, related of lamp.v1, lamp.v2) from m.test/b:1
  NOT AVAILABLE: c.test/c:1 (related of lamp.v2)
      m.test/c:1 (rule 1): 404
      n.test/c:1: gone
      c.test/c:1 (rule 2): not asked, it is blocked
    > copy the image to the mirror
  NOT AVAILABLE: d (related of lamp.v2)
      no image
  NOT CHECKED: e.test/e:1 (bundle of lamp.v3)
      only nodes may pull it
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !res.Fails() {
		t.Error("images are missing, and the result is good")
	}
	res.Images = res.Images[:2]
	if res.Fails() {
		t.Error("all images are available, and the result is bad")
	}
	res.Images[0].Check, res.Images[1].Check = nil, nil
	b.Reset()
	if err := res.Table(&b); err != nil || !strings.Contains(b.String(), "IMAGES\n  a.test/a:1 (bundle of lamp.v1)\n") || res.Fails() {
		t.Errorf("%s, %v", b.String(), err)
	}
}
