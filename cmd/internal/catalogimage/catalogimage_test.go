package catalogimage

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/chandlery/chandlery/bundles"
)

const sample = "../../../examples/catalog"

func options(t *testing.T) Options {
	t.Helper()
	return Options{
		Catalog: sample, Scratch: t.TempDir(), Created: time.Unix(0, 0).UTC(), Labels: map[string]string{"a": "b"},
		Platforms: []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}},
		OpmCache: func(_ context.Context, dir, _ string) error {
			return errors.Join(os.MkdirAll(dir, 0o750), os.WriteFile(filepath.Join(dir, "digest"), []byte("x"), 0o600))
		},
	}
}

func build(t *testing.T, o Options) *Built {
	t.Helper()
	built, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(built.Index); err != nil {
		t.Errorf("the index is invalid: %v", err)
	}
	return built
}

func TestBuild(t *testing.T) {
	built := build(t, options(t))
	if len(built.Images) != 2 || built.Packages != 2 || len(built.Contents) != 2 {
		t.Fatalf("got %+v", built)
	}
	config, err := built.Images[1].Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "b", ContentLabel: "/configs"}
	if diff := cmp.Diff(want, config.Config.Labels); diff != "" || config.Architecture != "arm64" || len(config.Config.Cmd) > 0 {
		t.Errorf("configuration: %+v\n%s", config, diff)
	}
	again, err := build(t, options(t)).Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := built.Index.Digest(); err != nil || digest != again {
		t.Errorf("the same catalog gives %v and %v, %v", digest, again, err)
	}
}

func TestBase(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, entrypoint string
		file               string
	}{
		"Registry": {"the registry needs its index", "/registry", "tmp/cache/chandlery.index"},
		"Opm":      {"opm needs its cache", "/bin/opm", "tmp/cache/digest"},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "s390x", RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{Entrypoint: []string{tt.entrypoint}}})
			if err != nil {
				t.Fatal(err)
			}
			o := options(t)
			o.Base = []PlatformImage{{v1.Platform{OS: "linux", Architecture: "s390x"}, base}}
			built := build(t, o)
			config, err := built.Images[0].Image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"serve", "/configs", "--cache-dir=/tmp/cache"}, config.Config.Cmd); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
			layers, err := built.Images[0].Image.Layers()
			if err != nil || len(layers) != 2 {
				t.Fatalf("layers: %v, %v", layers, err)
			}
			if names := namesIn(t, layers[1]); !slices.Contains(names, tt.file) {
				t.Errorf("%s: the layer has %v", tt.reason, names)
			}
		})
	}
}

// namesIn returns the names of the files in a layer.
func namesIn(t *testing.T, l v1.Layer) []string {
	t.Helper()
	plain, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	var names []string
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

// TestContents reads the SBOM of a catalog.
func TestContents(t *testing.T) {
	built := build(t, options(t))
	layers, err := built.Contents[0].Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	var doc spdx.Document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	const bundlesOfSample = 6
	if len(doc.Packages) != 1+bundlesOfSample {
		t.Errorf("got %d packages", len(doc.Packages))
	}
}

// TestInvalid checks that a catalog with problems builds no image.
func TestInvalid(t *testing.T) {
	o := options(t)
	o.Catalog = t.TempDir()
	if err := os.WriteFile(filepath.Join(o.Catalog, "c.yaml"), []byte("schema: olm.package\nname: p\ndefaultChannel: none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), o); !errors.As(err, new(bundles.Problems)) {
		t.Errorf("got %v", err)
	}
}
