package index

import (
	"encoding/json"
	"errors"
	"iter"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

const sample = `
schema: olm.package
name: p
defaultChannel: stable
description: about p
icon: {base64data: PHN2Zy8+, mediatype: image/svg+xml}
---
{schema: olm.channel, package: p, name: stable, entries: [{name: p.v2, replaces: p.v1, skips: [p.v1, p.v1.5], skipRange: "<2.0.0"}, {name: p.v1}]}
---
{schema: olm.channel, package: p, name: candidate, entries: [{name: p.v2, skips: [p.v1]}, {name: p.v1}]}
---
{schema: olm.deprecations, package: p, entries: [{reference: {schema: olm.bundle, name: p.v1}, message: old},
  {reference: {schema: olm.channel, name: candidate}, message: unused}, {reference: {schema: olm.package}, message: gone}]}
---
schema: olm.bundle
package: p
name: p.v1
properties:
- {type: olm.package, value: {packageName: p, version: 1.0.0}}
- {type: olm.bundle.object, value: {data: eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIn0=}}
---
schema: olm.bundle
package: p
name: p.v2
image: example.org/p:v2
relatedImages: [{name: a, image: example.org/a}]
properties:
- {type: olm.package, value: {packageName: p, version: 2.0.0}}
- {type: olm.csv.metadata, value: {displayName: P}}
- {type: olm.gvk, value: {group: g, version: v1, kind: K}}
- {type: olm.gvk, value: {group: g, version: v1, kind: K}}
- {type: olm.gvk.required, value: {group: g, version: v1, kind: R}}
- {type: olm.package.required, value: {packageName: q, versionRange: "<3.0.0"}}
`

func build(tb testing.TB) *Index {
	tb.Helper()
	catalog, err := fbc.Load(tb.Context(), fstest.MapFS{"c.yaml": {Data: []byte(sample)}}, fbc.Options{})
	if err == nil {
		err = catalog.Validate()
	}
	if err != nil {
		tb.Fatal(err)
	}
	x, err := Build(tb.Context(), catalog)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func decode[M proto.Message](t *testing.T, into M, message Message) M {
	t.Helper()
	if err := proto.Unmarshal(message.Bytes(), into); err != nil {
		t.Fatal(err)
	}
	if len(message.Bytes()) != message.Len() {
		t.Error("Len is not the length")
	}
	return into
}

func decodeEntries(t *testing.T, messages iter.Seq[Message]) []string {
	t.Helper()
	var out []string
	for m := range messages {
		e := decode(t, &api.ChannelEntry{}, m)
		out = append(out, e.GetPackageName()+"/"+e.GetChannelName()+"/"+e.GetBundleName()+"<-"+e.GetReplaces())
	}
	return out
}

// properties of p.v2 as clients see them.
var gvkV1 = bundles.GVK{Group: "g", Version: "v1", Kind: "K"}

func TestBundleForms(t *testing.T) {
	x := build(t)
	full, err := x.Bundle("p", "stable", "p.v2")
	if err != nil {
		t.Fatal(err)
	}
	got := decode(t, &api.Bundle{}, full)
	csv := got.GetCsvJson()
	if len(got.GetObject()) != 1 || got.GetObject()[0] != csv {
		t.Errorf("the made manifest is not the only object: %q", got.GetObject())
	}
	want := &api.Bundle{
		CsvName: "p.v2", PackageName: "p", ChannelName: "stable", BundlePath: "example.org/p:v2", Version: "2.0.0",
		SkipRange: "<2.0.0", CsvJson: csv, Object: []string{csv},
		ProvidedApis: []*api.GroupVersionKind{{Group: "g", Version: "v1", Kind: "K"}, {Group: "g", Version: "v1", Kind: "K"}},
		RequiredApis: []*api.GroupVersionKind{{Group: "g", Version: "v1", Kind: "R"}},
		Dependencies: []*api.Dependency{
			{Type: "olm.gvk", Value: `{"group":"g","kind":"R","version":"v1"}`},
			{Type: "olm.package", Value: `{"packageName":"q","version":"<3.0.0"}`},
		},
		Properties: []*api.Property{
			{Type: "olm.package", Value: `{"packageName":"p","version":"2.0.0"}`},
			{Type: "olm.gvk", Value: `{"group":"g","kind":"K","version":"v1"}`},
			{Type: "olm.gvk", Value: `{"group":"g","kind":"K","version":"v1"}`},
			{Type: "olm.gvk.required", Value: `{"group":"g","kind":"R","version":"v1"}`},
			{Type: "olm.package.required", Value: `{"packageName":"q","versionRange":"<3.0.0"}`},
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("full form: -want +got:\n%s", diff)
	}
	var listed []*api.Bundle
	for m := range x.Bundles() {
		listed = append(listed, decode(t, &api.Bundle{}, m))
	}
	if len(listed) != 4 {
		t.Fatalf("got %d listed bundles, want 4", len(listed))
	}
	// This entry is the last in the order of channel, package and bundle.
	want.CsvJson, want.Object, want.Replaces, want.Skips = "", nil, "p.v1", []string{"p.v1", "p.v1.5"}
	if diff := cmp.Diff(want, listed[3], protocmp.Transform()); diff != "" {
		t.Errorf("list form: -want +got:\n%s", diff)
	}
	inline := listed[0]
	if inline.GetChannelName() != "candidate" || inline.GetCsvName() != "p.v1" || inline.GetCsvJson() == "" || len(inline.GetObject()) != 1 {
		t.Errorf("a bundle without an image is listed with its manifests, got %v", inline)
	}
	if inline.GetDeprecation().GetMessage() != "old" {
		t.Errorf("deprecation: %v", inline.GetDeprecation())
	}
}

func TestMadeManifest(t *testing.T) {
	message, err := build(t).ChannelHead("p", "candidate")
	if err != nil {
		t.Fatal(err)
	}
	got := decode(t, &api.Bundle{}, message).GetCsvJson()
	want := `{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"p.v2"},` +
		`"spec":{"install":{"strategy":"deployment","spec":{"deployments":null}},"version":"2.0.0",` +
		`"customresourcedefinitions":{},"apiservicedefinitions":{},"displayName":"P","description":"about p","provider":{},` +
		`"icon":[{"base64data":"PHN2Zy8+","mediatype":"image/svg+xml"}],"cleanup":{"enabled":false},` +
		`"relatedImages":[{"name":"a","image":"example.org/a"}]},"status":{"cleanup":{}}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !json.Valid([]byte(got)) {
		t.Error("not JSON")
	}
}

func TestPackage(t *testing.T) {
	x := build(t)
	message, err := x.Package("p")
	if err != nil {
		t.Fatal(err)
	}
	want := &api.Package{
		Name: "p", DefaultChannelName: "stable", Deprecation: &api.Deprecation{Message: "gone"},
		Channels: []*api.Channel{
			{Name: "candidate", CsvName: "p.v2", Deprecation: &api.Deprecation{Message: "unused"}}, {Name: "stable", CsvName: "p.v2"},
		},
	}
	if diff := cmp.Diff(want, decode(t, &api.Package{}, message), protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRepeatedSkip has an entry that skips a bundle twice, for which opm has two answers.
func TestRepeatedSkip(t *testing.T) {
	keys := newSearchKeys()
	keys.addReplaced(&encodedEntry{replaces: "a", skips: []string{"a", "b", "b"}}, 3)
	if diff := cmp.Diff(map[string][]uint32{"a": {3}, "b": {3, 3}}, keys.replaced); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEntries(t *testing.T) {
	x := build(t)
	cases := map[string]struct {
		reason string
		ask    func() (iter.Seq[Message], error)
		want   []string
	}{
		"Replace": {
			reason: "replaced and skipped at once counts once, sorted by channel",
			ask:    func() (iter.Seq[Message], error) { return x.EntriesThatReplace("p.v1") },
			want:   []string{"p/candidate/p.v2<-", "p/stable/p.v2<-p.v1"},
		},
		"ReplaceSkipped": {
			reason: "the entry tells what it replaces, not what it skips",
			ask:    func() (iter.Seq[Message], error) { return x.EntriesThatReplace("p.v1.5") },
			want:   []string{"p/stable/p.v2<-p.v1"},
		},
		"Provide": {
			reason: "an API that is named twice counts once; skipped bundles follow",
			ask:    func() (iter.Seq[Message], error) { return x.EntriesThatProvide(gvkV1) },
			want: []string{
				"p/candidate/p.v2<-", "p/candidate/p.v2<-p.v1", "p/stable/p.v2<-p.v1", "p/stable/p.v2<-p.v1.5",
			},
		},
		"Latest": {
			reason: "skipped bundles of other channels are left out",
			ask:    func() (iter.Seq[Message], error) { return x.LatestEntriesThatProvide(gvkV1) },
			want:   []string{"p/candidate/p.v2<-", "p/candidate/p.v2<-p.v1", "p/stable/p.v2<-p.v1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			messages, err := tc.ask()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, decodeEntries(t, messages)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNotFound(t *testing.T) {
	x := build(t)
	none := bundles.GVK{Group: "g", Version: "v1", Kind: "None"}
	cases := map[string]struct {
		ask  func() error
		want string
	}{
		"Package":      {func() error { _, err := x.Package("q"); return err }, `package "q" not found`},
		"BundlePkg":    {func() error { _, err := x.Bundle("q", "c", "b"); return err }, `package "q" not found`},
		"BundleCh":     {func() error { _, err := x.Bundle("p", "c", "b"); return err }, `package "p", channel "c" not found`},
		"Bundle":       {func() error { _, err := x.Bundle("p", "stable", "b"); return err }, `package "p", channel "stable", bundle "b" not found`},
		"Head":         {func() error { _, err := x.ChannelHead("p", "c"); return err }, `package "p", channel "c" not found`},
		"ReplacesPkg":  {func() error { _, err := x.Replacement("b", "q", "c"); return err }, `package q not found`},
		"Replaces":     {func() error { _, err := x.Replacement("p.v2", "p", "stable"); return err }, `no entry found for package "p", channel "stable"`},
		"Replacements": {func() error { _, err := x.EntriesThatReplace("b"); return err }, `no channel entries found that replace b`},
		"Provide":      {func() error { _, err := x.EntriesThatProvide(none); return err }, `no channel entries found that provide group:"g" version:"v1" kind:"None"`},
		"Latest":       {func() error { _, err := x.LatestEntriesThatProvide(none); return err }, `no channel entries found that provide group:"g" version:"v1" kind:"None"`},
		"Default":      {func() error { _, err := x.DefaultProvider(none); return err }, `no channel entries found that provide group:"g" version:"v1" kind:"None"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.ask()
			if !errors.As(err, new(*NotFoundError)) || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestStats(t *testing.T) {
	got := build(t).Stats()
	got.Bytes = 0
	if diff := cmp.Diff(Stats{Packages: 1, Channels: 2, Bundles: 2, Entries: 4}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, name := range []string{realcatalogs.Metadata, realcatalogs.Objects} {
		b.Run(name, func(b *testing.B) {
			catalog, err := fbc.Load(b.Context(), os.DirFS(realcatalogs.Dir(b, name)), fbc.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(b.Context(), catalog); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
