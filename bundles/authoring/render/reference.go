package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/template"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/image"
)

// ImagePrefix marks a reference as an image, which may otherwise look like a directory.
const ImagePrefix = "oci:"

// Labels that describe the content of an image.
const (
	labelCatalog  = "operators.operatorframework.io.index.configs.v1"
	labelDatabase = "operators.operatorframework.io.index.database.v1"
	labelPackage  = "operators.operatorframework.io.bundle.package.v1"
)

// Opener reads the content of references. It extracts images to directories, which exist until
// Close. It is not safe for concurrent use.
type Opener struct {
	// Client pulls images.
	Client *image.Client
	// ImageRef returns the image of a bundle that is read from a directory; nil for none.
	ImageRef *template.Template
	// Pulling is called before an image is pulled. It returns a function to call afterwards. Nil for nothing.
	Pulling func(reference string) (done func())

	scratch string
	opened  []*Directory
}

// Close removes the extracted images.
func (o *Opener) Close() error {
	var errs []error
	for _, d := range o.opened {
		errs = append(errs, d.Close())
	}
	o.opened = nil
	if o.scratch != "" {
		errs = append(errs, os.RemoveAll(o.scratch))
		o.scratch = ""
	}
	return errors.Join(errs...)
}

// Open reads the bundle or the catalog of a reference: a directory, or an image with or without
// [ImagePrefix]. The error holds [bundles.Problems] when the content is invalid.
func (o *Opener) Open(ctx context.Context, reference string) (Source, error) {
	named, isImage := strings.CutPrefix(reference, ImagePrefix)
	if isImage {
		return o.image(ctx, named)
	}
	info, err := os.Stat(reference)
	switch {
	case err == nil && info.IsDir():
		return o.directory(ctx, reference, "")
	case err == nil:
		return nil, bundles.Problems{{
			File: reference, Message: "is a file",
			Remedy: "name the directory that holds it; SQLite databases cannot be read",
		}}
	case !errors.Is(err, fs.ErrNotExist) || !isLikeImage(reference):
		return nil, bundles.Problems{{
			File: reference, Message: cause(err).Error(), Remedy: "name a directory, or write " + ImagePrefix + reference + " for an image",
		}}
	}
	return o.image(ctx, reference)
}

// cause returns the cause of a path error, without the path.
func cause(err error) error {
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return wrong.Err
	}
	return err
}

// isLikeImage reports whether a reference begins with a registry, as in HOST/NAME.
func isLikeImage(reference string) bool {
	host, rest, ok := strings.Cut(reference, "/")
	return ok && rest != "" && !strings.HasPrefix(host, ".") && strings.ContainsAny(host, ".:") && image.IsReference(reference)
}

// Bundle reads the only bundle of a reference and converts it to newer forms up to a level; see [Migrated].
func (o *Opener) Bundle(ctx context.Context, reference, level string) (*declcfg.Bundle, error) {
	if IsDirectory(reference) && !IsBundle(reference) {
		return nil, bundles.Problems{{
			File: reference, Message: "the directory is not a bundle: it lacks the directories manifests and metadata",
			Remedy: "name the directory that holds them",
		}}
	}
	source, err := o.Open(ctx, reference)
	if err != nil {
		return nil, err
	}
	if source, err = Migrated(source, level); err != nil {
		return nil, err
	}
	cfg, err := All(ctx, source)
	if err != nil {
		return nil, err
	}
	if len(cfg.Bundles) != 1 || len(cfg.Packages) > 0 {
		return nil, bundles.Problems{{File: reference, Message: "is a catalog", Remedy: "name a bundle"}}
	}
	return &cfg.Bundles[0], nil
}

func (o *Opener) directory(ctx context.Context, dir, reference string) (Source, error) {
	if IsBundle(dir) {
		return o.bundle(dir, reference)
	}
	catalog, err := OpenDirectory(ctx, os.DirFS(dir))
	if err != nil && reference != "" {
		return nil, err
	}
	if err != nil {
		return nil, located(dir, err)
	}
	if reference == "" {
		catalog.path = dir
	}
	o.opened = append(o.opened, catalog)
	return catalog, nil
}

func (o *Opener) bundle(dir, reference string) (Source, error) {
	bundle, err := Bundle(dir, reference, o.ImageRef)
	if err != nil {
		return nil, err
	}
	return NewMemory(&declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{*bundle}}), nil
}

// located adds a directory to the file names in problems.
func located(dir string, err error) error {
	if problems, ok := errors.AsType[bundles.Problems](err); ok {
		return problems.Below(dir)
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// image extracts an image and reads its content.
func (o *Opener) image(ctx context.Context, reference string) (Source, error) {
	if o.Pulling != nil {
		defer o.Pulling(reference)()
	}
	labels, err := o.Client.Labels(ctx, reference)
	if err != nil {
		return nil, fmt.Errorf("reading the labels: %w", err)
	}
	tree, err := content(reference, labels)
	if err != nil {
		return nil, err
	}
	dir, err := o.extract(ctx, reference, tree)
	if err != nil {
		return nil, err
	}
	if labels[labelCatalog] == "" {
		return o.bundle(dir, reference)
	}
	source, err := o.directory(ctx, dir, reference)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", reference, err)
	}
	return source, nil
}

// content returns the tree to extract from an image.
func content(reference string, labels map[string]string) (image.Tree, error) {
	switch {
	case labels[labelCatalog] != "":
		return image.Catalog(), nil
	case labels[labelPackage] != "":
		// A bundle image holds nothing but manifests and metadata, so extract everything.
		return image.Tree{Default: "/"}, nil
	case labels[labelDatabase] != "":
		return image.Tree{}, bundles.Problems{{
			File: reference, Message: "the image holds an SQLite database",
			Remedy: "convert it with 'opm migrate' of an older release",
		}}
	}
	return image.Tree{}, bundles.Problems{{
		File: reference, Message: "the image is neither a catalog nor a bundle: it has none of the labels " + labelCatalog + " and " + labelPackage,
		Remedy: "name another image, or add the label to this one",
	}}
}

func (o *Opener) extract(ctx context.Context, reference string, tree image.Tree) (string, error) {
	if o.scratch == "" {
		scratch, err := os.MkdirTemp("", "catalog-*")
		if err != nil {
			return "", fmt.Errorf("creating a temporary directory: %w", err)
		}
		o.scratch = scratch
	}
	dir, err := os.MkdirTemp(o.scratch, "image-*")
	if err != nil {
		return "", fmt.Errorf("creating a temporary directory: %w", err)
	}
	if _, err := o.Client.Extract(ctx, reference, tree, dir, o.scratch); err != nil {
		return "", fmt.Errorf("extracting: %w", err)
	}
	return dir, nil
}
