package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/bundles/manifests"
)

// ConfigMap is a catalog in a directory where a ConfigMap is mounted. CatalogSources of the types
// configmap and internal name such ConfigMaps.
type ConfigMap struct {
	// Path of the directory.
	Path string
	// Filter selects the part of the content to keep.
	Filter Filter
}

// maxKeyBytes is far above the size of a ConfigMap, which is 1 MiB for all keys.
const maxKeyBytes = 16 << 20

// currentVersion is the symbolic link that the kubelet switches when the ConfigMap changes.
const currentVersion = "..data"

// IsConfigMap reports whether a directory holds exactly the keys of a ConfigMap with a catalog, as files.
func IsConfigMap(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	var keys []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "..") {
			keys = append(keys, entry.Name())
		}
	}
	want := manifests.Keys()
	slices.Sort(want)
	return slices.Equal(keys, want)
}

// Load reads, validates and indexes the catalog, and logs its warnings. The error holds
// [bundles.Problems] when the content cannot be served.
func (c ConfigMap) Load(ctx context.Context) (*index.Index, error) {
	catalog, warnings, err := c.Catalog()
	if err != nil {
		return nil, err
	}
	c.log(ctx, warnings)
	selected, err := c.Filter.apply(ctx, packages{catalog})
	if err != nil {
		return nil, err
	}
	x, err := index.CreateInMemory(ctx, selected, index.Options{Validated: true})
	return x, wrapBuildError(err)
}

// Create writes the index of the ConfigMap to a file.
func (c ConfigMap) Create(ctx context.Context, name string) (index.Info, error) {
	catalog, warnings, err := c.Catalog()
	if err != nil {
		return index.Info{}, err
	}
	c.log(ctx, warnings)
	selected, err := c.Filter.apply(ctx, packages{catalog})
	if err != nil {
		return index.Info{}, err
	}
	x, err := index.Create(ctx, name, selected, index.Options{Validated: true, Durable: true})
	if err != nil {
		return index.Info{}, wrapBuildError(err)
	}
	return x.Info(), nil
}

// Catalog reads and validates the catalog. The warnings are the problems that do not prevent serving.
func (c ConfigMap) Catalog() (catalog *bundles.Catalog, warnings bundles.Problems, err error) {
	data, err := c.read()
	if err != nil {
		return nil, nil, err
	}
	if catalog, warnings, err = manifests.Catalog(data); err != nil {
		return nil, nil, fmt.Errorf("reading ConfigMap: %w", err)
	}
	return catalog, warnings, nil
}

// Warnings returns the problems of the catalog that do not prevent serving.
func (c ConfigMap) Warnings() (bundles.Problems, error) {
	_, warnings, err := c.Catalog()
	return warnings, err
}

func (c ConfigMap) log(ctx context.Context, warnings bundles.Problems) {
	if c.Filter.Logger == nil {
		return
	}
	for _, p := range warnings {
		c.Filter.Logger.WarnContext(ctx, "Catalog has a problem", "problem", p.String())
	}
}

// read returns the existing keys, all of one version.
func (c ConfigMap) read() (map[string][]byte, error) {
	dir := c.Path
	if now, err := filepath.EvalSymlinks(filepath.Join(c.Path, currentVersion)); err == nil {
		dir = now
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for _, key := range manifests.Keys() {
		text, err := readKey(filepath.Join(dir, key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, bundles.Problems{{
				File: filepath.Join(c.Path, key), Message: err.Error(),
				Remedy: "mount the ConfigMap so that the user that serves the catalog can read it", Unreadable: true,
			}}
		}
		data[key] = text
	}
	return data, nil
}

var errLongKey = errors.New("is larger than a ConfigMap can be")

func readKey(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxKeyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	if len(text) > maxKeyBytes {
		return nil, errLongKey
	}
	return text, nil
}

// Fingerprint returns a text that changes when the mounted content changes.
func (c ConfigMap) Fingerprint() (string, error) { return Dir{Path: c.Path}.Fingerprint() }

// packages returns the packages of a catalog that has already been read.
type packages struct{ catalog *bundles.Catalog }

// Packages returns the names of all packages.
func (p packages) Packages() []string {
	names := make([]string, len(p.catalog.Packages))
	for i, one := range p.catalog.Packages {
		names[i] = one.Name
	}
	return slices.Compact(names)
}

// Package returns one package.
func (p packages) Package(_ context.Context, name string) (*bundles.Catalog, error) {
	var part bundles.Catalog
	for _, one := range p.catalog.Packages {
		if one.Name == name {
			part.Packages = append(part.Packages, one)
		}
	}
	return &part, nil
}

// Size returns 0 because packages of a ConfigMap are small.
func (packages) Size(string) int64 { return 0 }

// Problems returns none.
func (packages) Problems() bundles.Problems { return nil }
