package examples_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/examples"
)

// blob is any document of a rendered catalog.
type blob struct {
	Schema     string  `json:"schema"`
	Name       string  `json:"name"`
	Package    string  `json:"package"`
	Entries    []entry `json:"entries"`
	Properties []struct {
		Type  string `json:"type"`
		Value struct {
			Data string `json:"data"`
		} `json:"value"`
	} `json:"properties"`
}

type entry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces"`
	Skips     []string `json:"skips"`
	SkipRange string   `json:"skipRange"`
}

func decode(t *testing.T, text []byte) []blob {
	t.Helper()
	var blobs []blob
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(text)), 4096); ; {
		var b blob
		if err := decoder.Decode(&b); errors.Is(err, io.EOF) {
			return blobs
		} else if err != nil {
			t.Fatalf("decoding a rendered catalog: %v", err)
		}
		blobs = append(blobs, b)
	}
}

func TestCommittedCatalogIsCurrent(t *testing.T) {
	t.Parallel()
	tree := examples.Bundles()
	packages, err := examples.Packages(tree)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"compass", "lantern"}, packages); diff != "" {
		t.Fatalf("packages: -want +got:\n%s", diff)
	}
	for _, pkg := range packages {
		versions, err := examples.Versions(tree, pkg)
		if err != nil {
			t.Fatal(err)
		}
		got, err := examples.Render(tree, pkg, versions)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("catalog", pkg, "catalog.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("catalog/%s is not what bundles/%s gives; run 'make generate': -committed +rendered:\n%s", pkg, pkg, diff)
		}
	}
}

// TestCatalogFilesAreAccepted reads each catalog.yaml and each rendered catalog as the registry and as opm do. opm refuses
// a document without a schema, such as one with only a comment.
func TestCatalogFilesAreAccepted(t *testing.T) {
	t.Parallel()
	tree := examples.Bundles()
	packages, err := examples.Packages(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range packages {
		versions, err := examples.Versions(tree, pkg)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := examples.Render(tree, pkg, versions)
		if err != nil {
			t.Fatal(err)
		}
		written, err := fs.ReadFile(tree, pkg+"/catalog.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var bundles bytes.Buffer
		for document := range strings.SplitSeq(string(rendered), "---\n") {
			if strings.Contains(document, "schema: olm.bundle\n") {
				bundles.WriteString("---\n" + document)
			}
		}
		for name, catalog := range map[string]fstest.MapFS{
			"written":  {"catalog.yaml": {Data: written}, "bundles.yaml": {Data: bundles.Bytes()}},
			"rendered": {"catalog.yaml": {Data: rendered}},
		} {
			t.Run(pkg+"/"+name, func(t *testing.T) {
				t.Parallel()
				read, err := fbc.Load(t.Context(), catalog, fbc.Options{})
				if err != nil || len(read.Packages) != 1 || len(read.Packages[0].Bundles) != len(versions) {
					t.Errorf("the registry reads %+v, %v, want package %s with %d bundles", read, err, pkg, len(versions))
				}
				config, err := declcfg.LoadFS(t.Context(), catalog)
				if err != nil {
					t.Fatalf("opm refuses it: %v", err)
				}
				if _, err := declcfg.ConvertToModel(*config); err != nil || len(config.Bundles) != len(versions) {
					t.Errorf("opm reads %d bundles, want %d: %v", len(config.Bundles), len(versions), err)
				}
			})
		}
	}
}

func TestRenderLeavesOutOtherVersions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		pkg      string
		versions []string
		want     map[string][]string
	}{
		"FirstOfChain": {
			"the candidate channel starts with 1.1.0, so it does not exist yet", "lantern",
			[]string{"1.0.0"},
			map[string][]string{"stable": {"lantern.v1.0.0"}},
		},
		"FirstTwoOfChain": {
			"both channels exist from 1.1.0 on", "lantern",
			[]string{"1.0.0", "1.1.0"},
			map[string][]string{"stable": {"lantern.v1.0.0", "lantern.v1.1.0"}, "candidate": {"lantern.v1.1.0"}},
		},
		"All": {
			"a channel entry that is skipped stays an entry", "compass",
			[]string{"2.0.0", "2.1.0", "2.2.0"},
			map[string][]string{
				"stable": {"compass.v2.0.0", "compass.v2.1.0", "compass.v2.2.0"},
				"fast":   {"compass.v2.1.0", "compass.v2.2.0"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := examples.Render(examples.Bundles(), tc.pkg, tc.versions)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for _, b := range decode(t, text) {
				for _, e := range b.Entries {
					got[b.Name] = append(got[b.Name], e.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: channels: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBundlesAreValid(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"catalog/lantern/catalog.yaml", "catalog/compass/catalog.yaml"} {
		text, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range decode(t, text) {
			if b.Schema == "olm.bundle" {
				t.Run(b.Name, func(t *testing.T) { checkBundle(t, b) })
			}
		}
	}
}

// checkBundle reads the manifests of a bundle strictly, into the types of their
// APIs, and compares what the ClusterServiceVersion owns with what is there.
func checkBundle(t *testing.T, b blob) {
	t.Helper()
	var csv operatorsv1alpha1.ClusterServiceVersion
	var definitions []string
	for _, p := range b.Properties {
		if p.Type != "olm.bundle.object" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(p.Value.Data)
		if err != nil {
			t.Fatalf("object: %v", err)
		}
		switch {
		case strings.Contains(string(text), `"kind":"ClusterServiceVersion"`):
			if err := sigsyaml.UnmarshalStrict(text, &csv); err != nil {
				t.Fatalf("ClusterServiceVersion: %v", err)
			}
		case strings.Contains(string(text), `"kind":"CustomResourceDefinition"`):
			var crd apiextensionsv1.CustomResourceDefinition
			if err := sigsyaml.UnmarshalStrict(text, &crd); err != nil {
				t.Fatalf("CustomResourceDefinition: %v", err)
			}
			definitions = append(definitions, crd.Name)
		}
	}
	if want := b.Package + ".v" + csv.Spec.Version.String(); csv.Name != want || b.Name != want {
		t.Errorf("the bundle is %s and its ClusterServiceVersion %s, want %s", b.Name, csv.Name, want)
	}
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		if !slices.Contains(definitions, owned.Name) {
			t.Errorf("%s owns %s, which the bundle lacks", csv.Name, owned.Name)
		}
	}
	for _, mode := range []operatorsv1alpha1.InstallModeType{operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeAllNamespaces} {
		if !slices.Contains(csv.Spec.InstallModes, operatorsv1alpha1.InstallMode{Type: mode, Supported: true}) {
			t.Errorf("%s does not support install mode %s", csv.Name, mode)
		}
	}
	if len(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) == 0 {
		t.Errorf("%s has no deployment", csv.Name)
	}
}

func TestManifestsAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("manifests/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("manifests: found %v, %v, want four files", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var into any
			switch {
			case strings.Contains(document, "kind: CatalogSource"):
				into = &operatorsv1alpha1.CatalogSource{}
			case strings.Contains(document, "kind: Subscription"):
				into = &operatorsv1alpha1.Subscription{}
			case strings.Contains(document, "kind: OperatorGroup"):
				into = &operatorsv1.OperatorGroup{}
			default:
				into = &map[string]any{}
			}
			if err := sigsyaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Errorf("%s: %v\n%s", file, err, document)
			}
		}
	}
}

func TestRenderNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	head := &fstest.MapFile{Data: []byte("schema: olm.channel\nname: stable\nentries: []\n")}
	cases := map[string]struct {
		reason string
		tree   fstest.MapFS
		want   string
	}{
		"NoCatalogFile": {"the package has no channels", fstest.MapFS{"p/1.0.0/manifests/csv.yaml": {}}, "p/catalog.yaml"},
		"NoCSV":         {"a version without a ClusterServiceVersion has no name", fstest.MapFS{"p/catalog.yaml": head, "p/1.0.0/manifests/a.yaml": {Data: []byte("kind: Service\n")}}, "p/1.0.0"},
		"NotYAML":       {"the manifest cannot be read", fstest.MapFS{"p/catalog.yaml": head, "p/1.0.0/manifests/a.yaml": {Data: []byte("a: [")}}, "p/1.0.0/manifests/a.yaml"},
		"NotAList":      {"entries must be a list", fstest.MapFS{"p/catalog.yaml": {Data: []byte("schema: olm.channel\nname: stable\nentries: x\n")}, "p/1.0.0/manifests/a.yaml": {Data: []byte("kind: ClusterServiceVersion\nmetadata: {name: p.v1}\n")}}, "stable"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := examples.Render(tc.tree, "p", []string{"1.0.0"})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: Render = %v, want an error that names %s", tc.reason, err, tc.want)
			}
		})
	}
}

func TestVersionsAreSortedByMeaning(t *testing.T) {
	t.Parallel()
	got, err := examples.Versions(fstest.MapFS{"p/1.10.0/a.yaml": {}, "p/1.9.0/a.yaml": {}, "p/catalog.yaml": {}}, "p")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1.9.0", "1.10.0"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := examples.Versions(fstest.MapFS{"p/latest/a.yaml": {}}, "p"); err == nil {
		t.Error("Versions accepted a folder that is no version")
	}
}
