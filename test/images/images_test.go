package images_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/chandlery/chandlery/test/images"
)

// TestImagesHoldWhatTheySay builds one image of each kind, with small stand-ins for the programs.
func TestImagesHoldWhatTheySay(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	catalog := fstest.MapFS{"p/catalog.yaml": {Data: []byte("schema: olm.package\n")}}
	cache := fstest.MapFS{"pogreb.v1/digest": {Data: []byte("1")}}
	registry, err := images.Program(program, "registry", "serve", "/configs")
	if err != nil {
		t.Fatal(err)
	}
	for name, made := range map[string]struct {
		image func() (v1.Image, error)
		files []string
		label string
	}{
		"program": {func() (v1.Image, error) { return registry, nil }, []string{"registry"}, ""},
		"programs": {func() (v1.Image, error) {
			return images.Programs(v1.Config{}, map[string]string{"b": program, "a": program})
		}, []string{"bin/a", "bin/b"}, ""},
		"opm":      {func() (v1.Image, error) { return images.Opm(program, catalog, cache) }, []string{"bin/opm", "configs/p/catalog.yaml", "tmp/cache/pogreb.v1/digest"}, "/configs"},
		"registry": {func() (v1.Image, error) { return images.Registry(registry, catalog) }, []string{"configs/p/catalog.yaml", "registry"}, "/configs"},
		"content":  {func() (v1.Image, error) { return images.Content(catalog) }, []string{"configs/p/catalog.yaml"}, "/configs"},
		"broken":   {func() (v1.Image, error) { return images.Broken(registry) }, []string{"configs/nowhere/catalog.yaml", "registry"}, "/configs"},
		"empty":    {images.WithoutCatalog, []string{"etc/motd"}, "/configs"},
	} {
		t.Run(name, func(t *testing.T) {
			image, err := made.image()
			if err != nil {
				t.Fatal(err)
			}
			if got := files(t, image); !slices.Equal(got, made.files) {
				t.Errorf("files are %q, want %q", got, made.files)
			}
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if got := config.Config.Labels[images.ContentLabel]; got != made.label {
				t.Errorf("the label is %q, want %q", got, made.label)
			}
		})
	}
}

// files returns the names of the files in an image, sorted.
func files(t *testing.T, image v1.Image) []string {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	var names []string
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			names = append(names, header.Name)
		}
	}
}
