package index

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// clusterServiceVersion is the output of synthesize as types, which produce the same text with
// encoding/json. Fields have the order of the API type.
type clusterServiceVersion struct {
	Kind       string      `json:"kind"`
	APIVersion string      `json:"apiVersion"`
	Metadata   csvMetadata `json:"metadata"`
	Spec       csvSpec     `json:"spec"`
	Status     csvStatus   `json:"status"`
}

type csvMetadata struct {
	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type csvIcon struct {
	Data      string `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type csvSpec struct {
	Install                   csvInstall             `json:"install"`
	Version                   string                 `json:"version"`
	Maturity                  string                 `json:"maturity,omitempty"`
	CustomResourceDefinitions bundles.CRDs           `json:"customresourcedefinitions"`
	APIServiceDefinitions     bundles.APIServices    `json:"apiservicedefinitions"`
	NativeAPIs                []bundles.NativeAPI    `json:"nativeAPIs,omitempty"`
	MinKubeVersion            string                 `json:"minKubeVersion,omitempty"`
	DisplayName               string                 `json:"displayName"`
	Description               string                 `json:"description,omitempty"`
	Keywords                  []string               `json:"keywords,omitempty"`
	Maintainers               []bundles.Maintainer   `json:"maintainers,omitempty"`
	Provider                  bundles.AppLink        `json:"provider"`
	Links                     []bundles.AppLink      `json:"links,omitempty"`
	Icon                      []csvIcon              `json:"icon,omitempty"`
	InstallModes              []bundles.InstallMode  `json:"installModes,omitempty"`
	Cleanup                   csvCleanup             `json:"cleanup"`
	RelatedImages             []bundles.RelatedImage `json:"relatedImages,omitempty"`
}

type csvInstall struct {
	Strategy string          `json:"strategy"`
	Spec     csvInstallation `json:"spec"`
}

type csvInstallation struct {
	Deployments []struct{} `json:"deployments"`
}

type csvCleanup struct {
	Enabled bool `json:"enabled"`
}

type csvStatus struct {
	Cleanup struct{} `json:"cleanup"`
}

// marshalled returns the expected output of synthesize in one piece.
func marshalled(t *testing.T, p *bundles.Package, b *bundles.Bundle, facts *bundles.Facts) []byte {
	t.Helper()
	m, err := facts.CSVMetadata[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	csv := clusterServiceVersion{
		Kind: csvKind, APIVersion: csvAPIVersion,
		Metadata: csvMetadata{Name: b.Name, Labels: m.Labels, Annotations: m.Annotations},
		Spec: csvSpec{
			Install:  csvInstall{Strategy: "deployment"},
			Version:  semver.MustParse(facts.Packages[0].Version).String(),
			Maturity: m.Maturity, CustomResourceDefinitions: m.CustomResourceDefinitions,
			APIServiceDefinitions: m.APIServiceDefinitions, NativeAPIs: m.NativeAPIs,
			MinKubeVersion: m.MinKubeVersion, DisplayName: m.DisplayName, Description: m.Description,
			Keywords: m.Keywords, Maintainers: m.Maintainers, Provider: m.Provider, Links: m.Links,
			InstallModes: m.InstallModes, RelatedImages: b.RelatedImages,
		},
	}
	if csv.Spec.Description == "" {
		csv.Spec.Description = p.Description
	}
	if p.Icon != nil {
		csv.Spec.Icon = []csvIcon{{Data: base64.StdEncoding.EncodeToString(p.Icon.Data), MediaType: p.Icon.MediaType}}
	}
	out, err := json.Marshal(&csv)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkManifests compares the manifest of a bundle with the output of encoding/json.
func checkManifests(t *testing.T, p *bundles.Package, b *bundles.Bundle, icon []byte) {
	t.Helper()
	facts, err := bundles.ParseProperties(b.Properties)
	if err != nil {
		t.Fatalf("bundle %q: %v", b.Name, err)
	}
	csv, objects, err := manifests(p, b, facts, icon)
	if err != nil {
		t.Fatalf("bundle %q: %v", b.Name, err)
	}
	if len(facts.Objects) > 0 || len(facts.CSVMetadata) == 0 {
		return
	}
	got := bytes.Join(csv, nil)
	if diff := cmp.Diff(string(marshalled(t, p, b, facts)), string(got)); diff != "" {
		t.Fatalf("bundle %q: -want +got:\n%s", b.Name, diff)
	}
	if len(icon) > 0 && &csv[1][0] != &icon[0] {
		t.Errorf("bundle %q: the icon is not a part of its own", b.Name)
	}
	if len(objects) != 1 || len(objects[0]) != len(csv) || &objects[0][0][0] != &csv[0][0] {
		t.Errorf("bundle %q: the manifest is not the ClusterServiceVersion", b.Name)
	}
}

func TestSynthesizeRealCatalogs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{realcatalogs.Metadata, realcatalogs.Objects} {
		r, err := fbc.Open(t.Context(), os.DirFS(realcatalogs.Dir(t, name)), fbc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range r.Packages() {
			part, err := r.Package(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range part.Packages {
				icon := iconJSON(p)
				for _, b := range p.Bundles {
					checkManifests(t, p, b, icon)
				}
			}
		}
	}
}

// bundleWith returns a bundle with a metadata property.
func bundleWith(metadata string) *bundles.Bundle {
	return &bundles.Bundle{
		Name: "b", Package: "p", RelatedImages: []bundles.RelatedImage{{Name: "<a>", Image: "é"}, {}},
		Properties: []bundles.Property{
			{Type: bundles.TypePackage, Value: json.RawMessage(`{"packageName":"p","version":"1.0.0"}`)},
			{Type: bundles.TypeCSVMetadata, Value: json.RawMessage(metadata)},
		},
	}
}

// FuzzSynthesize checks that any accepted metadata becomes the output of encoding/json.
func FuzzSynthesize(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, ` { "keywords" : [ "a" , "b" ] } `, `{"description":"","displayName":"x"}`,
		`{"annotations":{"a":"<&>","b":"\n\"\\"},"labels":{}}`, `{"annotations":{"b":"1","a":"2"}}`,
		`{"annotations":{"a":null}}`, `{"annotations":{"\u0061":"b"}}`, `{"Keywords":["a"]}`, `{"keywords":null}`,
		`{"keywords":["a"],"keywords":[]}`, "{\"maturity\":\"\u2028\u00e9\"}", `{"maturity":"\u003c\u001f\u2028\ud800"}`,
		`{"crdDescriptions":{"owned":[{"kind":"K","name":"n","specDescriptors":[{"path":"p","value":{"a":[ 1.0 ,"<"]},"x-descriptors":[]}]}]}}`,
		`{"crdDescriptions":{"owned":[],"required":[{}]},"apiServiceDefinitions":{}}`,
		`{"apiServiceDefinitions":{"owned":[{"containerPort":443,"version":"v1"},{"containerPort":0},{"containerPort":-1}]}}`,
		`{"installModes":[{"supported":true,"type":"A"},{"supported":false}],"links":[{"url":"u"}],"provider":{"name":"n"}}`,
		`{"maintainers":[{"email":"e"}],"nativeAPIs":[{"kind":"k"}],"minKubeVersion":"1","unknown":{"a":[null,true,false]}}`,
		`{"installModes":[{"type":"\b\f\u0008"}]}`, `{"provider":{},"links":[{}]}`, `{"links":[null]}`,
	} {
		f.Add(seed, "d", true)
		f.Add(seed, "", false)
	}
	f.Fuzz(func(t *testing.T, metadata, description string, withIcon bool) {
		p := &bundles.Package{Name: "p", Description: description}
		if withIcon {
			p.Icon = &bundles.Icon{Data: []byte("<svg>"), MediaType: "image/svg+xml"}
		}
		b := bundleWith(metadata)
		_, err := bundles.ParseProperties(b.Properties)
		var decoded bundles.CSVMetadata
		if wrong := json.Unmarshal([]byte(metadata), &decoded); (wrong != nil) != (err != nil) {
			t.Fatalf("encoding/json says %v of %s, we say %v", wrong, metadata, err)
		}
		if err == nil {
			checkManifests(t, p, b, iconJSON(p))
		}
	})
}
