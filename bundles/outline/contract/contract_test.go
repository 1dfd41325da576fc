package contract

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/proto/api"
)

// catalog has a bundle in two channels and one with inline manifests.
func catalog(manifest string) *bundles.Catalog {
	bundle := func(name, version, image string, more ...bundles.Property) *bundles.Bundle {
		return &bundles.Bundle{Name: name, Package: "p", Image: image, Properties: append([]bundles.Property{{
			Type: bundles.TypePackage, Value: json.RawMessage(`{"packageName":"p","version":"` + version + `"}`),
		}}, more...)}
	}
	inline, err := json.Marshal(map[string][]byte{"data": []byte(manifest)})
	if err != nil {
		panic(err)
	}
	return &bundles.Catalog{Packages: []*bundles.Package{{
		Name: "p", DefaultChannel: "b",
		Channels: []*bundles.Channel{
			{Name: "a", Package: "p", Entries: []bundles.Entry{{Name: "v10", Skips: []string{"v9"}, SkipRange: "<10.0.0"}, {Name: "v9"}}},
			{Name: "b", Package: "p", Entries: []bundles.Entry{{Name: "v10", Replaces: "v9"}, {Name: "v9"}}},
		},
		Bundles: []*bundles.Bundle{
			bundle("v10", "10.0.0", "", bundles.Property{Type: bundles.TypeBundleObject, Value: inline}),
			bundle("v9", "9.0.0", "i:9", bundles.Property{Type: bundles.TypeGVK, Value: json.RawMessage(`{"group":"g","kind":"K","version":"v1"}`)}),
		},
		Deprecations: []bundles.DeprecationList{{Entries: []bundles.Deprecation{
			{Reference: bundles.Reference{Schema: bundles.SchemaPackage}, Message: "gone"},
			{Reference: bundles.Reference{Schema: bundles.SchemaChannel, Name: "a"}, Message: "use b"},
			{Reference: bundles.Reference{Schema: bundles.SchemaBundle, Name: "v9"}, Message: "old"},
		}}},
	}}}
}

func read(t *testing.T, c *bundles.Catalog) *outline.Catalog {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	x, err := index.Build(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	out, err := FromIndex(t.Context(), x, outline.Options{Manifests: true})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFromIndex(t *testing.T) {
	got := read(t, catalog(`{"kind":"A"}`))
	p := got.Package("p")
	if p == nil || got.Package("q") != nil {
		t.Fatalf("packages: %v", got.Packages)
	}
	if p.DefaultChannel != "b" || p.Deprecation != "gone" || p.Channel("a").Deprecation != "use b" || p.Channel("c") != nil {
		t.Errorf("package: %+v", p)
	}
	older := p.Channel("a").Entry("v9")
	want := &outline.Entry{
		Name: "v9", Version: "9.0.0", Image: "i:9", Deprecation: "old",
		Provides: []bundles.GVK{{Group: "g", Version: "v1", Kind: "K"}},
		Properties: []bundles.Property{
			{Type: bundles.TypePackage, Value: json.RawMessage(`{"packageName":"p","version":"9.0.0"}`)},
			{Type: bundles.TypeGVK, Value: json.RawMessage(`{"group":"g","kind":"K","version":"v1"}`)},
		},
		Manifests: older.Manifests,
	}
	if diff := cmp.Diff(want, older); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	newer := p.Channel("a").Entry("v10")
	if newer.SkipRange != "<10.0.0" || len(newer.Skips) != 1 || newer.Manifests == older.Manifests || newer.Manifests == "" {
		t.Errorf("entry: %+v", newer)
	}
	if p.Channel("b").Head != "v10" || p.Channel("b").Entry("v10").Replaces != "v9" || p.Channel("b").Entry("v10").Manifests != newer.Manifests {
		t.Errorf("channel: %+v", p.Channel("b"))
	}
	if head, err := p.Channel("b").Graph().Head(); err != nil || head.Name != "v10" {
		t.Errorf("graph: %v, %v", head, err)
	}
	other := read(t, catalog(`{"kind":"B"}`)).Package("p").Channel("a").Entry("v10")
	if other.Manifests == newer.Manifests {
		t.Error("other manifests have the same digest")
	}
}

func TestBundles(t *testing.T) {
	got := read(t, catalog("{}")).Package("p").Bundles()
	if len(got) != 2 || got[0].Name != "v10" || got[1].Name != "v9" {
		t.Fatalf("want the highest version first, got %v", got)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got[0].Channels); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAddUnknown(t *testing.T) {
	b := NewBuilder([]*api.Package{{Name: "p"}})
	b.Add(&api.Bundle{CsvName: "x", PackageName: "p", ChannelName: "c"})
	b.Add(&api.Bundle{CsvName: "x", PackageName: "q"})
	if got := b.Catalog(); len(got.Packages) != 1 || len(got.Packages[0].Channels) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestCompareVersions(t *testing.T) {
	inOrder := []string{"", "latest", "1.0.0-rc.1", "1.0.0", "1.0.0+1", "1.9.0", "1.10.0"}
	for i := range inOrder {
		for j := range inOrder {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := outline.CompareVersions(inOrder[i], inOrder[j]); got != want {
				t.Errorf("CompareVersions(%q, %q) = %d, want %d", inOrder[i], inOrder[j], got, want)
			}
		}
	}
}

// TestDamaged checks that damage is reported.
func TestDamaged(t *testing.T) {
	text := `{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"b"}]}
{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`
	reader, err := fbc.Open(t.Context(), fstest.MapFS{"c": {Data: []byte(text)}}, fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	name := filepath.Join(t.TempDir(), "c.index")
	if _, err := index.Create(t.Context(), name, reader, index.Options{}); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const firstData = 512
	written[firstData] ^= 1
	damaged := filepath.Join(t.TempDir(), "c.index")
	if err := os.WriteFile(damaged, written, 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(damaged)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := FromIndex(t.Context(), x, outline.Options{}); !errors.Is(err, index.ErrDamaged) {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestFromSource compares the outline of a catalog with the outline of its index.
func TestFromSource(t *testing.T) {
	root := os.DirFS("../../../examples/catalog")
	reader, err := fbc.Open(t.Context(), root, fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	got, err := outline.FromSource(t.Context(), reader, outline.Options{Manifests: true})
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.CreateInMemory(t.Context(), reader, index.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := FromIndex(t.Context(), x, outline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range want.Packages {
		p.DisplayName, p.Provider = "", ""
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(outline.Entry{}, "Manifests")); diff != "" {
		t.Errorf("-index +source:\n%s", diff)
	}
	digests := map[string]bool{}
	for _, b := range got.Packages[0].Bundles() {
		digests[b.Manifests] = true
	}
	if len(digests) != len(got.Packages[0].Bundles()) {
		t.Errorf("digests of manifests: %v", digests)
	}
}
