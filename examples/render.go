package examples

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// Packages returns the names of the packages in a tree of bundles, sorted.
func Packages(tree fs.FS) ([]string, error) {
	return folders(tree, ".")
}

// Versions returns the versions of a package in a tree of bundles, oldest first.
func Versions(tree fs.FS, pkg string) ([]string, error) {
	names, err := folders(tree, pkg)
	if err != nil {
		return nil, err
	}
	versions := make([]semver.Version, 0, len(names))
	for _, name := range names {
		version, err := semver.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("folder %s: name it by a semantic version: %w", path.Join(pkg, name), err)
		}
		versions = append(versions, version)
	}
	slices.SortFunc(versions, semver.Version.Compare)
	for i, version := range versions {
		names[i] = version.String()
	}
	return names, nil
}

// Render returns the catalog file (YAML, many documents) of a package with its
// given versions. Channel entries of other versions are left out, and with them
// channels that have no entry left, so a catalog can be shown as it was when only
// some of the versions existed.
func Render(tree fs.FS, pkg string, versions []string) ([]byte, error) {
	head, err := documents(tree, path.Join(pkg, "catalog.yaml"))
	if err != nil {
		return nil, err
	}
	bundles := make([]map[string]any, 0, len(versions))
	names := make([]string, 0, len(versions))
	for _, version := range versions {
		b, err := bundle(tree, pkg, version)
		if err != nil {
			return nil, err
		}
		bundles = append(bundles, b)
		name, _ := b["name"].(string) // set by bundle
		names = append(names, name)
	}
	blobs, err := restrict(head, names)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", pkg, err)
	}
	return marshal(append(blobs, bundles...))
}

// folders returns the names of the folders in a folder, sorted.
func folders(tree fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(tree, dir)
	if err != nil {
		return nil, fmt.Errorf("listing the sample bundles: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// documents reads all documents of a YAML file.
func documents(tree fs.FS, name string) ([]map[string]any, error) {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, fmt.Errorf("reading a sample manifest: %w", err)
	}
	var found []map[string]any
	for decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(text)); ; {
		var document map[string]any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(document) > 0 {
			found = append(found, document)
		}
	}
}

// marshal writes the blobs as YAML documents, in their order.
func marshal(blobs []map[string]any) ([]byte, error) {
	var out bytes.Buffer
	for _, blob := range blobs {
		text, err := json.Marshal(blob)
		if err != nil {
			return nil, fmt.Errorf("encoding a catalog blob: %w", err)
		}
		text, err = sigsyaml.JSONToYAML(text)
		if err != nil {
			return nil, fmt.Errorf("encoding a catalog blob: %w", err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}
