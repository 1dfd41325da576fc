package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/pkg/image"
	"github.com/operator-framework/operator-registry/pkg/registry"
	"github.com/sirupsen/logrus" //nolint:depguard // operator-registry writes to its standard logger
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles"
)

// The directories of a bundle.
const (
	manifestsDir = "manifests"
	metadataDir  = "metadata"
)

// quiet discards the logs of operator-registry about missing optional files of a bundle.
var quiet = sync.OnceFunc(func() { logrus.SetOutput(io.Discard) })

// IsBundle reports whether a directory holds a bundle: it has the directories manifests and
// metadata.
func IsBundle(dir string) bool {
	return IsDirectory(filepath.Join(dir, manifestsDir)) && IsDirectory(filepath.Join(dir, metadataDir))
}

// IsDirectory reports whether a path is a directory.
func IsDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// ParseImageRef parses a template for the references of bundles that are rendered from directories.
// It may use {{.Package}}, {{.Name}} and {{.Version}}.
func ParseImageRef(text string) (*template.Template, error) {
	parsed, err := template.New("image reference").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the template %q: %w", text, err)
	}
	return parsed, nil
}

// Bundle renders the bundle in a directory. ref is the image of the bundle; if it is empty,
// imageRef returns the image. imageRef may be nil. A bundle without an image holds its manifests
// inline.
func Bundle(dir, ref string, imageRef *template.Template) (*declcfg.Bundle, error) {
	quiet()
	if err := checkFiles(filepath.Join(dir, manifestsDir)); err != nil {
		return nil, err
	}
	read, err := readBundle(dir, ref)
	if err != nil {
		return nil, bundleProblem(dir, err)
	}
	if imageRef != nil && ref == "" {
		if read.BundleImage, err = execute(imageRef, read); err != nil {
			return nil, bundleProblem(dir, err)
		}
	}
	out, err := convert(read)
	if err != nil {
		return nil, bundleProblem(dir, err)
	}
	return out, nil
}

func readBundle(dir, reference string) (*registry.Bundle, error) {
	input, err := registry.NewImageInput(image.SimpleReference(reference), dir)
	if err != nil {
		return nil, err
	}
	return input.Bundle, nil
}

// bundleProblem returns the problem of a bundle that cannot be rendered.
func bundleProblem(dir string, err error) error {
	return bundles.Problems{{File: dir, Message: err.Error(), Remedy: "correct the bundle's manifests or its metadata/annotations.yaml"}}
}

// checkFiles returns an error for manifests that operator-registry would omit because it cannot decode them.
func checkFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return bundles.Problems{{File: dir, Message: err.Error(), Remedy: "name a directory that holds manifests and metadata"}}
	}
	var problems bundles.Problems
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		if strings.HasPrefix(entry.Name(), ".") || entry.IsDir() {
			continue
		}
		if err := checkFile(filepath.Join(dir, entry.Name())); err != nil {
			problems = append(problems, bundles.Problem{
				File: filepath.Join(dir, entry.Name()), Message: err.Error(), Remedy: "correct the manifest, or remove the file",
			})
		}
	}
	return problems.OrNil()
}

func checkFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var object unstructured.Unstructured
	encoded, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, &object.Object)
}

func execute(t *template.Template, b *registry.Bundle) (string, error) {
	version, err := b.Version()
	if err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	var text strings.Builder
	err = t.Execute(&text, struct{ Package, Name, Version string }{b.Package, b.Name, version})
	if err != nil {
		return "", fmt.Errorf("naming the bundle's image: %w", err)
	}
	return text.String(), nil
}

// convert converts a bundle to the form in catalogs.
func convert(b *registry.Bundle) (*declcfg.Bundle, error) {
	objects, properties, err := registry.ObjectsAndPropertiesFromBundle(b)
	if err != nil {
		return nil, fmt.Errorf("reading properties: %w", err)
	}
	related, err := relatedImages(b)
	if err != nil {
		return nil, fmt.Errorf("reading related images: %w", err)
	}
	out := &declcfg.Bundle{
		Schema: declcfg.SchemaBundle, Name: b.Name, Package: b.Package, Image: b.BundleImage,
		Properties: properties, RelatedImages: related, Objects: objects,
	}
	for _, object := range b.Objects {
		if object.GetKind() != "ClusterServiceVersion" {
			continue
		}
		text, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encoding the ClusterServiceVersion: %w", err)
		}
		out.CsvJSON = string(text)
	}
	return out, nil
}

// errNoPackage means that a bundle does not name its package.
var errNoPackage = errors.New("metadata/annotations.yaml does not name the package; set operators.operatorframework.io.bundle.package.v1")

// relatedImages returns the images of a bundle: the related images of its ClusterServiceVersion,
// the images of its Deployments, and its own image.
func relatedImages(b *registry.Bundle) ([]declcfg.RelatedImage, error) {
	if b.Package == "" {
		return nil, errNoPackage
	}
	csv, err := b.ClusterServiceVersion()
	if err != nil {
		return nil, err
	}
	var spec struct {
		RelatedImages []declcfg.RelatedImage `json:"relatedImages"`
	}
	if err := json.Unmarshal(csv.Spec, &spec); err != nil {
		return nil, fmt.Errorf("spec.relatedImages: %w", bundles.DescribeJSON(err))
	}
	all := spec.RelatedImages
	add := func(reference string) {
		known := slices.ContainsFunc(all, func(i declcfg.RelatedImage) bool { return i.Image == reference })
		if reference != "" && !known {
			all = append(all, declcfg.RelatedImage{Image: reference})
		}
	}
	add(b.BundleImage)
	deployed, err := csv.GetOperatorImages()
	if err != nil {
		return nil, fmt.Errorf("reading the images of Deployments: %w", err)
	}
	for _, reference := range slices.Sorted(maps.Keys(deployed)) {
		add(reference)
	}
	return all, nil
}
