package manifests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
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
			catalog, err := Catalog(data("[]", tc.csvs, tc.packages))
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
	catalog, err := Catalog(data(crds, owning, one))
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
		"NotAList":   {reason: "the key is named", data: data("{}", good, one), want: []string{"customResourceDefinitions: is not a list"}},
		"NotYAML":    {reason: "the key is named", data: data("[]", good, "a: [") /* ] */, want: []string{"packages: is not a list"}},
		"TooMany":    {reason: "the parser takes memory for each value", data: data("[]", good, "- 1"+strings.Repeat("\r- 1", 400_001)), want: []string{"packages: is too large: it may hold 400001 values, at most 400000 are allowed"}},
		"NoName":     {reason: "the element is named", data: data("[]", good+"- {}\n", one), want: []string{"clusterServiceVersions[1]: metadata.name is missing"}},
		"Null":       {reason: "nothing is no object", data: data("[null]", good, one), want: []string{"customResourceDefinitions[0]: metadata.name is missing"}},
		"WrongKind":  {reason: "kinds count", data: data("[]", good+"- {kind: Pod, metadata: {name: x}}\n", one), want: []string{`clusterServiceVersions[1]: an object of kind "Pod"`}},
		"WrongType":  {reason: "the field is named", data: data("[]", "- {metadata: {name: v3}, spec: {skips: x}}", one), want: []string{`clusterServiceVersions[0]: decoding: wrong type: field "spec.skips" must be a list`}},
		"TwiceCSV":   {reason: "names are unique", data: data("[]", good+good, one), want: []string{`clusterServiceVersions[1]: ClusterServiceVersion "v3" is there twice`}},
		"TwiceCRD":   {reason: "APIs are unique", data: data(crds+strings.TrimPrefix(crds, "\n"), good, one), want: []string{"customResourceDefinitions[2]: the custom resource definition of", "customResourceDefinitions[3]:"}},
		"NoVersion":  {reason: "definitions have versions", data: data("- {spec: {group: x}}", good, one), want: []string{"customResourceDefinitions[0]: the custom resource definition has no version"}},
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
			_, err := Catalog(tc.data)
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
		catalog, err := Catalog(in)
		if err != nil {
			if len(bundles.AsProblems(err)) == 0 {
				t.Error("an error without a problem")
			}
			return
		}
		again, err := Catalog(in)
		if err != nil || cmp.Diff(catalog, again) != "" {
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
		_ = catalog.Validate()
	})
}
