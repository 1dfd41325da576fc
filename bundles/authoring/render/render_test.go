package render

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/image"
)

const (
	sampleCatalog = "../../../examples/catalog"
	sampleBundle  = "../../../examples/bundles/lantern/1.0.0"
)

func opener(t *testing.T) *Opener {
	t.Helper()
	client, err := image.New(image.Options{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	o := &Opener{Client: client}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func written(t *testing.T, format Format, source Source) string {
	t.Helper()
	var text bytes.Buffer
	if err := Write(t.Context(), &text, format, source); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestWriteLikeDeclcfg compares the output of package-by-package writing with the output of declcfg
// for the whole catalog.
func TestWriteLikeDeclcfg(t *testing.T) {
	t.Parallel()
	source, err := opener(t).Open(t.Context(), sampleCatalog)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := declcfg.LoadFS(t.Context(), os.DirFS(sampleCatalog), declcfg.WithConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	arrange(whole)
	for format, write := range map[Format]declcfg.WriteFunc{JSON: declcfg.WriteJSON, YAML: declcfg.WriteYAML} {
		var want bytes.Buffer
		if err := write(*whole, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), written(t, format, source)); diff != "" {
			t.Errorf("%s: -library +ours:\n%s", format, diff)
		}
	}
}

// TestRoundTrip writes a catalog in both formats to a directory and reads it again.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	o := opener(t)
	source, err := o.Open(t.Context(), sampleCatalog)
	if err != nil {
		t.Fatal(err)
	}
	want := written(t, JSON, source)
	for _, format := range []Format{JSON, YAML} {
		dir := filepath.Join(t.TempDir(), "catalog")
		if err := WriteDirectory(t.Context(), dir, format, source); err != nil {
			t.Fatal(err)
		}
		again, err := o.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, written(t, JSON, again)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", format, diff)
		}
		if err := WriteDirectory(t.Context(), dir, format, source); !errors.As(err, new(bundles.Problems)) {
			t.Errorf("a directory with files was written to: %v", err)
		}
	}
}

// TestInterrupted checks that an interrupted write leaves nothing behind.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	source, err := opener(t).Open(t.Context(), sampleCatalog)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	parent := t.TempDir()
	stopping := Changed(source, func(*declcfg.DeclarativeConfig) error { cancel(); return ctx.Err() })
	if err := WriteDirectory(ctx, filepath.Join(parent, "catalog"), JSON, stopping); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBundle(t *testing.T) {
	t.Parallel()
	o := opener(t)
	var err error
	if o.ImageRef, err = ParseImageRef("example.com/{{.Package}}:v{{.Version}}"); err != nil {
		t.Fatal(err)
	}
	b, err := o.Bundle(t.Context(), sampleBundle, CSVMetadata)
	if err != nil {
		t.Fatal(err)
	}
	if b.Name != "lantern.v1.0.0" || b.Package != "lantern" || b.Image != "example.com/lantern:v1.0.0" || hasManifests(b) {
		t.Errorf("got %+v", b)
	}
	var related []string
	for _, r := range b.RelatedImages {
		related = append(related, r.Image)
	}
	if diff := cmp.Diff([]string{"example.com/lantern:v1.0.0", "registry.k8s.io/pause:3.10"}, related); diff != "" {
		t.Errorf("related images: -want +got:\n%s", diff)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	broken := t.TempDir()
	if err := os.CopyFS(broken, os.DirFS(sampleBundle)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "manifests", "x.yaml"), []byte("a: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ reason, reference, file string }{
		"Missing":   {"there is no such directory", "./nowhere", "./nowhere"},
		"Name":      {"a name without a registry is no image", "nowhere", "nowhere"},
		"File":      {"a file is neither", filepath.Join(sampleBundle, "metadata", "annotations.yaml"), "annotations.yaml"},
		"Manifest":  {"a manifest that cannot be decoded is not left out", broken, "x.yaml"},
		"Manifests": {"the files of a directory are no catalog", filepath.Join(sampleBundle, "manifests"), "manifests/clusterserviceversion.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := opener(t).Open(t.Context(), tt.reference)
			var problems bundles.Problems
			if !errors.As(err, &problems) || !strings.HasSuffix(problems[0].File, tt.file) || problems[0].Remedy == "" {
				t.Errorf("%s: got %v", tt.reason, err)
			}
		})
	}
}

// TestWrongType checks that the error names file and line of an object that cannot be decoded.
func TestWrongType(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{"a.json": {Data: []byte("\n{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":5}\n")}}
	d, err := OpenDirectory(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = d.Package(t.Context(), "p")
	var problems bundles.Problems
	if !errors.As(err, &problems) || problems[0].File != "a.json:2" || problems[0].Channel != "c" {
		t.Errorf("got %v", err)
	}
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	bundle, err := filepath.Abs(sampleBundle)
	if err != nil {
		t.Fatal(err)
	}
	basic := "schema: olm.template.basic\nentries:\n- {schema: olm.package, name: lantern, defaultChannel: stable}\n" +
		"- {schema: olm.channel, package: lantern, name: stable, entries: [{name: lantern.v1.0.0}]}\n- {schema: olm.bundle, image: " + bundle + "}\n"
	for name, tt := range map[string]struct {
		reason, kind, text string
		bundles            int
		failed             bool
	}{
		"Basic":   {reason: "the schema says the type", text: basic, bundles: 1},
		"Named":   {reason: "the type is given", kind: "basic", text: basic, bundles: 1},
		"Other":   {reason: "the template is of another type", kind: "semver", text: basic, failed: true},
		"Unknown": {reason: "there is no such type", kind: "x", text: basic, failed: true},
		"NotYAML": {reason: "it cannot be decoded", text: "a: [", failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := opener(t).Template(t.Context(), tt.kind, "t.yaml", strings.NewReader(tt.text))
			if tt.failed {
				var problems bundles.Problems
				if !errors.As(err, &problems) || problems[0].File != "t.yaml" {
					t.Errorf("%s: got %v", tt.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := All(t.Context(), source)
			if err != nil || len(cfg.Bundles) != tt.bundles {
				t.Errorf("%s: got %+v, %v", tt.reason, cfg, err)
			}
		})
	}
}
