package image

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v2"
)

// Tree selects the directory of an image to extract.
type Tree struct {
	// Label is the image label that holds the directory.
	Label string
	// Default is the directory of images without the label; empty to require the label.
	Default string
	// Metadata is the directory of the file annotations.yaml, which replaces the labels of images
	// without them; empty for none. It must not be above or below Default.
	Metadata string
	// FormatLabel is the label with the format of the directory, which must be Format. An image
	// without the label is assumed to have that format. Empty for any format.
	FormatLabel, Format string
	// Legacy maps labels of images with other content to the name of that content.
	Legacy map[string]string
}

// Labels of images of catalogs and of bundles.
const (
	labelCatalog   = "operators.operatorframework.io.index.configs.v1"
	labelDatabase  = "operators.operatorframework.io.index.database.v1"
	labelManifests = "operators.operatorframework.io.bundle.manifests.v1"
	labelMediaType = "operators.operatorframework.io.bundle.mediatype.v1"
)

// Catalog returns the tree of the catalog in a catalog image.
func Catalog() Tree {
	return Tree{
		Label: labelCatalog, Default: "/configs",
		Legacy: map[string]string{
			labelDatabase: "an SQLite database, which older catalogs use: " +
				"convert it with 'opm migrate' of an older release",
			labelManifests: "a single bundle, not a catalog",
		},
	}
}

// Bundle returns the tree of the manifests in a bundle image.
func Bundle() Tree {
	return Tree{
		Label: labelManifests, Default: "/manifests", Metadata: "/metadata",
		FormatLabel: labelMediaType, Format: "registry+v1",
		Legacy: map[string]string{
			labelCatalog:  "a catalog, not a bundle: the catalog that names it has to name the image of the bundle",
			labelDatabase: "an SQLite catalog, not a bundle: the catalog that names it must name the image of the bundle",
		},
	}
}

// isUnlabelled reports whether annotations.yaml must replace the labels of an image.
func (w *Tree) isUnlabelled(labels map[string]string) bool {
	return w.Metadata != "" && labels[w.Label] == ""
}

// check returns an error for an image whose labels state another content.
func (w *Tree) check(labels map[string]string) error {
	if content := w.other(labels); content != "" && w.isUnlabelled(labels) {
		return fail(ReasonNoTree, "has no label %s; it holds %s", w.Label, content)
	}
	format := labels[w.FormatLabel]
	if w.FormatLabel != "" && format != "" && format != w.Format {
		return fail(ReasonFormat, "is of format %q, as %s says: only %s can be used; build the image in that format",
			clip(format), w.FormatLabel, w.Format)
	}
	return nil
}

// dir returns the directory in the labels, without leading and trailing slashes.
func (w *Tree) dir(labels map[string]string) (string, error) {
	dir, labelled := labels[w.Label]
	if !labelled || dir == "" {
		dir = w.Default
	}
	if dir == "" {
		return "", w.missing(labels, fail(ReasonNoTree, "has no label %s", w.Label))
	}
	if len(dir) > maxPathBytes {
		return "", fail(ReasonInvalid, "label %s names a directory of %d bytes", w.Label, len(dir))
	}
	dir = strings.TrimPrefix(path.Clean("/"+dir), "/")
	if dir == "" {
		dir = "."
	}
	return dir, nil
}

// other returns the name of the other content of an image with these labels.
func (w *Tree) other(labels map[string]string) string {
	for _, label := range slices.Sorted(maps.Keys(w.Legacy)) {
		if _, ok := labels[label]; ok {
			return w.Legacy[label]
		}
	}
	return ""
}

// missing adds the name of the other content to an error.
func (w *Tree) missing(labels map[string]string, err error) error {
	if content := w.other(labels); content != "" {
		return fail(ReasonNoTree, "%w; it holds %s", err, content)
	}
	if _, labelled := labels[w.Label]; !labelled && errors.Is(err, errEmptyTree) {
		return fail(ReasonNoTree, "%w, and it has no label %s that names another", err, w.Label)
	}
	return err
}

// annotationsName is a file in the metadata directory. maxAnnotations is the largest size that is read.
const (
	annotationsName = "annotations.yaml"
	maxAnnotations  = 256 << 10
)

// unlabelled extracts the directory that annotations.yaml names below root. It extracts the usual
// directory in the same pass as that file.
func (e *extraction) unlabelled(ctx context.Context, root *os.Root) (*tree, error) {
	temp, err := os.MkdirTemp(e.scratch, "metadata-*")
	if err != nil {
		return nil, fail(ReasonLocal, "making a temporary directory: %w", err)
	}
	defer removeAll(temp)
	metadata, err := os.OpenRoot(temp)
	if err != nil {
		return nil, fail(ReasonLocal, "opening a temporary directory: %w", err)
	}
	defer metadata.Close() //nolint:errcheck // what was written has been closed
	limits := e.limits()
	usual, err := e.what.dir(nil)
	if err != nil {
		return nil, err
	}
	inMetadata := strings.Trim(e.what.Metadata, "/")
	extracted := newTree(root, usual, limits)
	if err := e.layers(ctx, extracted, newTree(metadata, inMetadata, limits)); err != nil {
		return nil, err
	}
	labels, err := readAnnotations(metadata, inMetadata)
	if err != nil {
		return nil, err
	}
	if err := e.what.check(labels); err != nil {
		return nil, err
	}
	named, err := e.what.dir(labels)
	if err != nil || named == usual {
		return extracted, err
	}
	if err := extracted.removeBelow("."); err != nil {
		return nil, err
	}
	again := newTree(root, named, limits)
	return again, e.layers(ctx, again)
}

// readAnnotations reads the annotations that replace labels.
func readAnnotations(metadata *os.Root, inMetadata string) (map[string]string, error) {
	where := path.Join("/", inMetadata, annotationsName)
	file, err := metadata.Open(annotationsName)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fail(ReasonLocal, "opening %s: %w", where, err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return nil, fail(ReasonInvalid, "%s is no file", where)
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, maxAnnotations+1))
	}
	if err != nil {
		return nil, fail(ReasonLocal, "reading %s: %w", where, err)
	}
	if len(text) > maxAnnotations {
		return nil, fail(ReasonTooLarge, "%w: %s has more than %d bytes", errTooLarge, where, maxAnnotations)
	}
	var found struct {
		Annotations map[string]string `yaml:"annotations"`
	}
	if err := yaml.Unmarshal(text, &found); err != nil {
		return nil, fail(ReasonInvalid, "%s cannot be decoded; correct it and build the image again: %w", where, err)
	}
	return found.Annotations, nil
}
