package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
)

// csvOf returns a CSV as an element of a YAML list. spec is YAML in braces.
func csvOf(name, version, spec string) string {
	return fmt.Sprintf("- metadata: {name: %s}\n  spec: {version: %s, %s}\n", name, version, spec)
}

func data(crds, csvs, packages string) map[string][]byte {
	return map[string][]byte{KeyCRDs: []byte(crds), KeyCSVs: []byte(csvs), KeyPackages: []byte(packages)}
}

const one = "- {packageName: p, channels: [{name: a, currentCSV: v3}]}"

func TestCatalog(t *testing.T) {
	cases := map[string]struct {
		reason   string
		csvs     string
		packages string
		want     map[string][]bundles.Entry
	}{
		"Chain": {
			reason:   "what replaces what",
			csvs:     csvOf("v1", "1.0.0", "") + csvOf("v3", "3.0.0", "replaces: v2") + csvOf("v2", "2.0.0", "replaces: v1"),
			packages: one,
			want:     map[string][]bundles.Entry{"a": {{Name: "v3", Replaces: "v2"}, {Name: "v2", Replaces: "v1"}, {Name: "v1"}}},
		},
		"EndOfChain": {
			reason: "the first may replace what is not there any more", csvs: csvOf("v3", "3.0.0", "replaces: v2"), packages: one,
			want: map[string][]bundles.Entry{"a": {{Name: "v3", Replaces: "v2"}}},
		},
		"Skips": {
			reason:   "what is skipped stays to be had, as far as it is there",
			csvs:     csvOf("v3", "3.0.0", "skips: [v2, v1]") + csvOf("v2", "2.0.0", "replaces: v1"),
			packages: one,
			want:     map[string][]bundles.Entry{"a": {{Name: "v3", Skips: []string{"v2", "v1"}}, {Name: "v2"}}},
		},
		"SkipsItsChain": {
			reason:   "a chain that goes on behind what is skipped is kept whole",
			csvs:     csvOf("v3", "3.0.0", "replaces: v2, skips: [v2, v0]") + csvOf("v2", "2.0.0", "replaces: v1") + csvOf("v1", "1.0.0", ""),
			packages: one,
			want: map[string][]bundles.Entry{"a": {
				{Name: "v3", Replaces: "v2", Skips: []string{"v0"}}, {Name: "v2", Replaces: "v1"}, {Name: "v1"},
			}},
		},
		"SkipsAllOfItsChain": {
			reason:   "one that is skipped as a whole is as it is",
			csvs:     csvOf("v3", "3.0.0", "replaces: v2, skips: [v2, v1]") + csvOf("v2", "2.0.0", "replaces: v1") + csvOf("v1", "1.0.0", ""),
			packages: one,
			want: map[string][]bundles.Entry{"a": {
				{Name: "v3", Replaces: "v2", Skips: []string{"v2", "v1"}}, {Name: "v2", Replaces: "v1"}, {Name: "v1"},
			}},
		},
		"SkipRange": {
			reason:   "the range is in an annotation",
			csvs:     "- metadata: {name: v3, annotations: {olm.skipRange: '<3.0.0'}}\n  spec: {version: 3.0.0}\n",
			packages: one,
			want:     map[string][]bundles.Entry{"a": {{Name: "v3", SkipRange: "<3.0.0"}}},
		},
		"Channels": {
			reason:   "each has its own chain, and what is in none is left out",
			csvs:     csvOf("v1", "1.0.0", "") + csvOf("v3", "3.0.0", "replaces: v1") + csvOf("v9", "9.0.0", ""),
			packages: "- {packageName: p, defaultChannel: a, channels: [{name: b, currentCSV: v1}, {name: a, currentCSV: v3}]}",
			want:     map[string][]bundles.Entry{"a": {{Name: "v3", Replaces: "v1"}, {Name: "v1"}}, "b": {{Name: "v1"}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			catalog, _, err := Catalog(data("[]", tc.csvs, tc.packages))
			if err != nil {
				t.Fatal(err)
			}
			if err := catalog.Validate(); err != nil {
				t.Errorf("%s: it does not validate: %v", tc.reason, err)
			}
			p := catalog.Packages[0]
			got, names := map[string][]bundles.Entry{}, map[string]bool{}
			for _, channel := range p.Channels {
				got[channel.Name] = channel.Entries
				for _, entry := range channel.Entries {
					names[entry.Name] = true
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || p.DefaultChannel != "a" || len(p.Bundles) != len(names) {
				t.Errorf("%s: default %q, %d bundles, -want +got:\n%s", tc.reason, p.DefaultChannel, len(p.Bundles), diff)
			}
		})
	}
}

const (
	crds = `
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: as.x.io}
  spec: {group: x.io, names: {kind: A, plural: as}, versions: [{name: v1}, {name: v2, large: 12345678901234567}]}
- metadata: {name: bs.x.io}
  spec: {group: x.io, version: v1, names: {kind: B, plural: bs}}
`
	owning = `
- metadata:
    name: v3
    annotations:
      olm.properties: '[{"type":"olm.constraint","value":{"b":1,"a":"<>"}},{"type":"olm.package","value":{}}]'
  spec:
    version: 3.0.0
    customresourcedefinitions:
      owned: [{name: as.x.io, version: v1, kind: A}, {name: as.x.io, version: v2, kind: A}, {name: none.x.io, version: v1, kind: None}]
      required: [{name: cs.y.io, version: v1, kind: C}, {name: cs.y.io, version: v1, kind: C}]
    apiservicedefinitions:
      owned: [{group: z.io, version: v1, kind: Z, name: zs}]
      required: [{group: q.io, version: v1, kind: Q}]
    relatedImages: [{name: i, image: a.example/i}, {name: i, image: a.example/i}]
`
)

func TestBundleProperties(t *testing.T) {
	catalog, _, err := Catalog(data(crds, owning, one))
	if err != nil {
		t.Fatal(err)
	}
	if err := catalog.Validate(); err != nil {
		t.Fatal(err)
	}
	bundle := catalog.Packages[0].Bundles[0]
	var got []string
	for _, p := range bundle.Properties {
		text := string(p.Value)
		if p.Type == bundles.TypeBundleObject {
			manifest, err := bundles.BundleObject(p.Value).AppendData(nil)
			if err != nil {
				t.Fatal(err)
			}
			text = string(manifest)
		}
		got = append(got, p.Type+" "+text)
	}
	want := []string{
		`olm.package {"packageName":"p","version":"3.0.0"}`,
		`olm.gvk {"group":"x.io","kind":"A","version":"v1"}`,
		`olm.gvk {"group":"x.io","kind":"A","version":"v2"}`,
		`olm.gvk {"group":"x.io","kind":"None","version":"v1"}`,
		`olm.gvk {"group":"z.io","kind":"Z","version":"v1"}`,
		`olm.gvk.required {"group":"y.io","kind":"C","version":"v1"}`,
		`olm.gvk.required {"group":"q.io","kind":"Q","version":"v1"}`,
		`olm.constraint {"a":"<>","b":1}`,
	}
	if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	manifests := got[len(want):]
	if len(manifests) != 2 || !strings.Contains(manifests[0], `"kind":"ClusterServiceVersion"`) ||
		!strings.Contains(manifests[0], `"apiVersion":"operators.coreos.com/v1alpha1"`) ||
		!strings.Contains(manifests[1], `"name":"as.x.io"`) || !strings.Contains(manifests[1], "12345678901234567") {
		t.Errorf("manifests: %q", manifests)
	}
	if diff := cmp.Diff([]bundles.RelatedImage{{Name: "i", Image: "a.example/i"}}, bundle.RelatedImages); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBadCatalog(t *testing.T) {
	good := csvOf("v3", "3.0.0", "")
	cases := map[string]struct {
		reason string
		data   map[string][]byte
		want   []string
	}{
		"NoKeys": {
			reason: "all keys are named", data: nil,
			want: []string{
				"clusterServiceVersions: the ConfigMap has no such key; add it; its value is a list, [] for an empty one",
				"customResourceDefinitions: the ConfigMap has no such key", "packages: the ConfigMap has no such key",
			},
		},
		"NotAList":  {reason: "the key is named", data: data("{}", good, one), want: []string{"customResourceDefinitions: is not a list"}},
		"NotYAML":   {reason: "the key is named", data: data("[]", good, "a: [") /* ] */, want: []string{"packages: is not a list"}},
		"TooMany":   {reason: "the parser takes memory for each value", data: data("[]", good, "- 1"+strings.Repeat("\r- 1", 400_001)), want: []string{"packages: is too large: it may hold 400001 values, at most 400000 are allowed"}},
		"NoName":    {reason: "the element is named", data: data("[]", good+"- {}\n", one), want: []string{"clusterServiceVersions[1]: metadata.name is missing"}},
		"WrongKind": {reason: "kinds count", data: data("[]", good+"- {kind: Pod, metadata: {name: x}}\n", one), want: []string{`clusterServiceVersions[1]: an object of kind "Pod"`}},
		"WrongType": {reason: "the field is named", data: data("[]", "- {metadata: {name: v3}, spec: {skips: x}}", one), want: []string{`clusterServiceVersions[0]: decoding: wrong type: field "spec.skips" must be a list`}},
		"TwiceCSV":  {reason: "names are unique", data: data("[]", good+good, one), want: []string{`clusterServiceVersions[1]: ClusterServiceVersion "v3" is there twice`}},
		"TwiceCRD":  {reason: "APIs are unique", data: data(crds+strings.TrimPrefix(crds, "\n"), good, one), want: []string{"customResourceDefinitions[2]: the custom resource definition of", "customResourceDefinitions[3]:"}},
		"NoVersion": {
			reason: "definitions have versions", data: data("- {metadata: {name: as.x}, spec: {group: x}}", csvOf("v3", "3.0.0", "customresourcedefinitions: {owned: [{name: as.x}]}"), one),
			want: []string{`clusterServiceVersions: package "p", bundle "v3": spec.customresourcedefinitions.owned[0]: custom resource definition "as.x" in customResourceDefinitions[0] is not valid`},
		},
		"Cycle": {
			reason: "a chain ends", data: data("[]", csvOf("v3", "3.0.0", "replaces: v2")+csvOf("v2", "2.0.0", "replaces: v3"), one),
			want: []string{`packages[0]: package "p", channel "a": detected cycle in replaces chain of upgrade graph: v3 -> v2 -> v3`},
		},
		"NoChannel":    {reason: "packages have channels", data: data("[]", good, "- {packageName: p}"), want: []string{`packages[0]: package "p": the package has no channel`}},
		"TwiceChannel": {reason: "names are unique", data: data("[]", good, "- {packageName: p, channels: [{name: a, currentCSV: v3}, {name: a, currentCSV: v3}], defaultChannel: a}"), want: []string{`package "p", channel "a": the channel is there twice`}},
		"NoDefault": {
			reason: "one of several channels is the default", data: data("[]", good, "- {packageName: p, channels: [{name: a, currentCSV: v3}, {name: b, currentCSV: v3}], defaultChannel: c}"),
			want: []string{`package "p": defaultChannel "c" is none of the channels "a", "b"`},
		},
		"BadPropertyValue": {
			reason: "known properties have a form", data: data("[]", "- metadata: {name: v3, annotations: {olm.properties: '[{\"type\":\"olm.gvk\",\"value\":1}]'}}\n  spec: {version: 3.0.0}\n", one),
			want: []string{`annotation olm.properties: properties[1] of type "olm.gvk"`},
		},
		"MissingCSV": {reason: "channels have heads", data: data("[]", "[]", one), want: []string{`packages[0]: package "p", channel "a": currentCSV "v3" is not in clusterServiceVersions`}},
		"BadCRDName": {
			reason: "names have groups", data: data("[]", csvOf("v3", "3.0.0", "customresourcedefinitions: {owned: [{name: as}]}"), one),
			want: []string{`clusterServiceVersions: package "p", bundle "v3": spec.customresourcedefinitions.owned[0]: custom resource definition name "as" is not of the form plural.group`},
		},
		"BadProperties": {
			reason: "the annotation is JSON", data: data("[]", "- metadata: {name: v3, annotations: {olm.properties: '{'}}\n  spec: {version: 3.0.0}\n", one),
			want: []string{`annotation olm.properties: is not valid`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := Catalog(tc.data)
			got := strings.Split(fmt.Sprint(err), "\n")
			for i, want := range tc.want {
				if i >= len(got) || !strings.Contains(got[i], want) {
					t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
				}
			}
			if len(bundles.AsProblems(err)) != len(tc.want) {
				t.Errorf("%s: got %q, want %d problems", tc.reason, got, len(tc.want))
			}
		})
	}
}

// TestWarnings checks what is served although it has a problem.
func TestWarnings(t *testing.T) {
	good := csvOf("v3", "3.0.0", "")
	named := func(name string) string {
		return "- {packageName: " + name + ", channels: [{name: a, currentCSV: v3}]}"
	}
	owner := csvOf("v3", "3.0.0", "customresourcedefinitions: {owned: [{name: as.x, version: v1, kind: A}]}")
	crd := func(plural string) string {
		return "- {spec: {group: x, version: v1, names: {kind: A, plural: " + plural + "}}}\n"
	}
	for reason, tt := range map[string]struct {
		data map[string][]byte
		want []string
	}{
		"nothing is wrong":                      {data("[]", good, one), nil},
		"an empty text is an empty list":        {data("", good, one), nil},
		"null is an empty list":                 {data("null", good, one), nil},
		"a skipped version is not there":        {data("[]", csvOf("v3", "3.0.0", "skips: [v1]"), one), nil},
		"a name with upper case":                {data("[]", good, named("LampShade")), []string{`package "LampShade": the package name is not a DNS label`}},
		"a name with a dot":                     {data("[]", good, named("lamp.shade")), []string{"is not a DNS label"}},
		"a long name":                           {data("[]", good, named(strings.Repeat("a", 70))), []string{"is not a DNS label"}},
		"a number as a name":                    {data("[]", good, named("'9'")), []string{`packages[0]: package "9": the package name is a number`}},
		"a channel with a space":                {data("[]", good, "- {packageName: p, channels: [{name: Main Line, currentCSV: v3}]}"), []string{`packages[0]: package "p", channel "Main Line": the channel name cannot be part of the name of an object`}},
		"a channel with a slash":                {data("[]", good, "- {packageName: p, channels: [{name: v1/beta, currentCSV: v3}]}"), []string{`channel "v1/beta": the channel name cannot`}},
		"a channel with a version":              {data("[]", good, "- {packageName: p, channels: [{name: stable-1.2.x, currentCSV: v3}]}"), nil},
		"a package twice":                       {data("[]", good, one+"\n"+one), []string{`packages[1]: package "p": the package is also in packages[0], which is not served`}},
		"another default than the only channel": {data("[]", good, "- {packageName: p, defaultChannel: other, channels: [{name: a, currentCSV: v3}]}"), []string{`defaultChannel "other" is not a channel`}},
		"two versions that are the same":        {data("[]", csvOf("v3", "3.0.0", "replaces: v2")+csvOf("v2", "3.0.0", ""), one), []string{"duplicate versions found in bundles: [{3.0.0: [v2, v3]}]"}},
		"no version":                            {data("[]", "- {metadata: {name: v3}, spec: {}}", one), []string{`version "" is not a semantic version`}},
		"a tolerant version":                    {data("[]", csvOf("v3", "'1.0'", ""), one), []string{`version "1.0" is not a semantic version`}},
		"a version with a v":                    {data("[]", csvOf("v3", "v1.0.0", ""), one), []string{`version "v1.0.0" is not a semantic version`}},
		"a text as a version":                   {data("[]", csvOf("v3", "latest", ""), one), []string{`version "latest" is not a semantic version`}},
		"an invalid skipRange":                  {data("[]", "- metadata: {name: v3, annotations: {olm.skipRange: x}}\n  spec: {version: 3.0.0}\n", one), []string{"invalid skipRange"}},
		"a definition without an API":           {data("- {metadata: {name: bs.x}}", owner+"", one), []string{`customResourceDefinitions[0]: the custom resource definition has no version`, `the owned custom resource definition "as.x", x/v1, Kind=A, is not in customResourceDefinitions`}},
		"a definition that is null":             {data("[null]", good, one), []string{"customResourceDefinitions[0]: metadata.name is missing"}},
		"an owned definition that is missing":   {data("[]", owner, one), []string{`clusterServiceVersions[0]: package "p", bundle "v3": the owned custom resource definition "as.x"`}},
		"one API with two plurals":              {data(crd("bs")+crd("as"), owner, one), []string{"customResourceDefinitions[1]: the API is also defined in customResourceDefinitions[0]"}},
		"an unknown dependency": {
			data("[]", "- metadata: {name: v3, annotations: {olm.properties: '[{\"type\":\"olm.wish.required\",\"value\":1},{\"type\":\"mine\",\"value\":1}]'}}\n  spec: {version: 3.0.0}\n", one),
			[]string{`the dependency type "olm.wish.required" is unknown`},
		},
		"a replaced version that is missing": {data("[]", csvOf("v3", "3.0.0", "replaces: v2"), one), []string{`bundle "v3": replaces "v2", which is not in clusterServiceVersions`}},
		"a version in no channel":            {data("[]", good+csvOf("v9", "9.0.0", ""), one), []string{`clusterServiceVersions[1]: bundle "v9": the ClusterServiceVersion is in no channel`}},
		"a version that skips itself":        {data("[]", csvOf("v3", "3.0.0", "skips: [v3]"), one), nil},
		"a catalog without packages":         {data("[]", "[]", "[]"), []string{"packages: the ConfigMap contains no packages"}},
		"a key twice":                        {data("[]", "- metadata: {name: v3}\n  spec:\n    version: 1.0.0\n    version: 3.0.0\n", one), []string{`clusterServiceVersions[0]: spec.version is there twice`}},
		"a key over a merged one":            {data("[]", "- metadata: {name: v3}\n  spec: {<<: {version: 1.0.0}, version: 3.0.0}\n", one), nil},
		"keys twice in JSON": {
			data("[]", `[{"metadata":{"name":"v3"},"spec":{"version":"1.0.0","links":[{"name":"a","name":"b","name":"c"}],"version":"3.0.0"}}]`, one),
			[]string{`clusterServiceVersions[0]: spec.links[0].name is there twice`, `clusterServiceVersions[0]: spec.version is there twice`},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			catalog, warnings, err := Catalog(tt.data)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tt.want {
				if i >= len(warnings) || !strings.Contains(warnings[i].String(), want) {
					t.Errorf("got %q, want %q", warnings, tt.want)
				}
			}
			if len(warnings) != len(tt.want) {
				t.Errorf("got %q, want %d warnings", warnings, len(tt.want))
			}
			if _, err := index.CreateInMemory(t.Context(), packagesOf{catalog}, index.Options{Validated: true}); err != nil {
				t.Errorf("it cannot be indexed: %v", err)
			}
		})
	}
}

// TestLastCounts checks which of several objects with one name is served.
func TestLastCounts(t *testing.T) {
	crds := "- {spec: {group: x, version: v1, names: {kind: A, plural: bs}}}\n- {spec: {group: x, version: v1, names: {kind: A, plural: as}}}\n"
	csvs := csvOf("v1", "1.0.0", "") + "- metadata: {name: v3}\n  spec:\n    version: 1.0.0\n    version: 3.0.0\n    customresourcedefinitions: {owned: [{name: as.x, version: v1, kind: A}]}\n"
	catalog, _, err := Catalog(data(crds, csvs, "- {packageName: p, channels: [{name: a, currentCSV: v1}]}\n- {packageName: p, channels: [{name: next, currentCSV: v3}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := catalog.Packages[0]
	if len(catalog.Packages) != 1 || len(p.Channels) != 1 || p.DefaultChannel != "next" || len(p.Bundles) != 1 {
		t.Fatalf("packages %+v", catalog.Packages)
	}
	facts, err := bundles.ParseProperties(p.Bundles[0].Properties)
	if err != nil || facts.Packages[0].Version != "3.0.0" || len(facts.Objects) != 2 {
		t.Fatalf("properties %+v, %v", facts, err)
	}
	if manifest, err := facts.Objects[1].AppendData(nil); err != nil || !strings.Contains(string(manifest), `"plural":"as"`) {
		t.Errorf("the definition is %s, %v", manifest, err)
	}
}

// packagesOf is the catalog of a ConfigMap as a source of an index.
type packagesOf struct{ catalog *bundles.Catalog }

func (p packagesOf) Packages() []string {
	names := make([]string, len(p.catalog.Packages))
	for i, one := range p.catalog.Packages {
		names[i] = one.Name
	}
	return names
}

func (p packagesOf) Package(_ context.Context, name string) (*bundles.Catalog, error) {
	at := slices.Index(p.Packages(), name)
	return &bundles.Catalog{Packages: p.catalog.Packages[at : at+1]}, nil
}

func (packagesOf) Size(string) int64          { return 0 }
func (packagesOf) Problems() bundles.Problems { return nil }

// TestBundle builds a bundle from manifests of other sources.
func TestBundle(t *testing.T) {
	got, err := Bundle("p", json.RawMessage(`{"metadata":{"name":"p.v1"},"spec":{"version":"1.0.0"}}`), json.RawMessage(`{"kind":"Service"}`))
	if err != nil || got.Name != "p.v1" || got.Package != "p" || len(got.Properties) != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := Bundle("p", json.RawMessage(`{}`)); err == nil {
		t.Error("a CSV without a name makes a bundle")
	}
}

func FuzzCatalog(f *testing.F) {
	f.Add([]byte(crds), []byte(owning), []byte(one))
	f.Add([]byte("[]"), []byte(csvOf("v3", "3.0.0", "replaces: v3, skips: [v3]")), []byte(one))
	f.Add([]byte("[]"), []byte(csvOf("v3", "3.0.0", "replaces: v2, skips: [v2]")+csvOf("v2", "2", "replaces: v3")), []byte(one))
	f.Fuzz(func(t *testing.T, crds, csvs, packages []byte) {
		in := map[string][]byte{KeyCRDs: crds, KeyCSVs: csvs, KeyPackages: packages}
		catalog, warnings, err := Catalog(in)
		if err != nil {
			if len(bundles.AsProblems(err)) == 0 {
				t.Error("an error without a problem")
			}
			return
		}
		again, same, err := Catalog(in)
		if err != nil || cmp.Diff(catalog, again) != "" || cmp.Diff(warnings, same) != "" {
			t.Errorf("not the same the second time: %v", err)
		}
		for _, p := range catalog.Packages {
			for _, channel := range p.Channels {
				for _, entry := range channel.Entries {
					if !slices.ContainsFunc(p.Bundles, func(b *bundles.Bundle) bool { return b.Name == entry.Name }) {
						t.Errorf("entry %q has no bundle", entry.Name)
					}
				}
			}
		}
		if _, err := index.CreateInMemory(t.Context(), packagesOf{catalog}, index.Options{Validated: true}); err != nil {
			t.Errorf("a catalog without an error cannot be indexed: %v", err)
		}
	})
}
