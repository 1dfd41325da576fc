package catalogimage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/chandlery/chandlery/bundles/image/assembly"
	"github.com/chandlery/chandlery/bundles/image/layer"
	"github.com/chandlery/chandlery/server/source"
)

// Paths in the image.
const (
	configs = "configs"
	cache   = "tmp/cache"
)

// ContentLabel is the label that holds the path of the catalog.
const ContentLabel = "operators.operatorframework.io.index.configs.v1"

// createdBy is the creator in the history of the images.
const createdBy = "chandlery catalog push"

// Options configure [Build].
type Options struct {
	// Catalog is the directory of the catalog.
	Catalog string
	// Base are the images to put the catalog on, one for each platform. Without a base, the images
	// hold nothing but content, for the platforms of Platforms.
	Base      []PlatformImage
	Platforms []v1.Platform
	// Labels are added to the labels of the base.
	Labels map[string]string
	// Created is the time of the image and its files.
	Created time.Time
	// OpmCache fills a directory with opm's cache of a catalog. Images whose base runs opm get such
	// a cache. Two caches of the same catalog differ.
	OpmCache func(ctx context.Context, dir, catalog string) error
	// WithOpmCache adds opm's cache to an image without a base, too.
	WithOpmCache bool
	// Scratch is a directory for the layers. It must exist as long as the image is used.
	Scratch string
}

// PlatformImage is an image for one platform.
type PlatformImage struct {
	Platform v1.Platform
	Image    v1.Image
}

// Built is the image of a catalog.
type Built struct {
	// Index has a manifest for each platform.
	Index v1.ImageIndex
	// Images are the images of Index, in the same order.
	Images []PlatformImage
	// Contents are the SBOMs of the catalog, one for each image: artifacts that refer to the image.
	Contents []v1.Image
	// Packages and Bundles are the numbers of packages and bundles in the catalog.
	Packages, Bundles int
}

// Build builds the image of a catalog. The error holds [bundles.Problems] when the catalog is invalid.
func Build(ctx context.Context, o Options) (*Built, error) {
	dir := source.Dir{Path: o.Catalog}
	index := filepath.Join(o.Scratch, source.IndexFile)
	info, err := dir.Create(ctx, index)
	if err != nil {
		return nil, fmt.Errorf("building the index: %w", err)
	}
	content, err := o.contentLayer()
	if err != nil {
		return nil, err
	}
	if len(o.Base) == 0 {
		if o.Base, err = o.empty(); err != nil {
			return nil, err
		}
	}
	built := &Built{Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex), Packages: info.Packages, Bundles: info.Bundles}
	caches := &cacheLayers{options: &o, index: index, made: map[string]v1.Layer{}}
	for _, base := range o.Base {
		made, err := o.on(ctx, base, content, caches)
		if err != nil {
			return nil, fmt.Errorf("building the image for %s: %w", base.Platform, err)
		}
		built.Images = append(built.Images, PlatformImage{base.Platform, made})
		built.Index = mutate.AppendManifests(built.Index, mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{Platform: &base.Platform}})
	}
	return built, o.list(ctx, built)
}

func (o *Options) contentLayer() (v1.Layer, error) {
	root, err := filepath.EvalSymlinks(o.Catalog)
	if err != nil {
		return nil, fmt.Errorf("finding the catalog: %w", err)
	}
	entries, err := layer.Files(os.DirFS(root), configs)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the files
	}
	return layer.Write(filepath.Join(o.Scratch, "content.tar.gz"), entries, o.Created) //nolint:wrapcheck // says what it does
}

// empty returns images without layers.
func (o *Options) empty() ([]PlatformImage, error) {
	var all []PlatformImage
	for _, platform := range o.Platforms {
		made, err := assembly.Assemble(createdBy, &v1.ConfigFile{
			OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant, Created: v1.Time{Time: o.Created.UTC()},
		})
		if err != nil {
			return nil, err //nolint:wrapcheck // says what it does
		}
		all = append(all, PlatformImage{platform, made})
	}
	return all, nil
}

// program is the program that serves the catalog in an image.
type program string

// The programs that may serve a catalog.
const (
	none     program = "none"
	registry program = "registry"
	opm      program = "opm"
)

// programOf returns the program that an image runs.
func programOf(config *v1.Config) program {
	switch {
	case len(config.Entrypoint) == 0:
		return none
	case path.Base(config.Entrypoint[0]) == "registry":
		return registry
	}
	return opm
}

// on returns a base with the catalog added.
func (o *Options) on(ctx context.Context, base PlatformImage, content v1.Layer, caches *cacheLayers) (v1.Image, error) {
	config, err := base.Image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the base: %w", err)
	}
	serves := programOf(&config.Config)
	cached, err := caches.of(ctx, serves)
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	o.configure(config, serves)
	made, err := mutate.ConfigFile(base.Image, config)
	if err != nil {
		return nil, fmt.Errorf("configuring the image: %w", err)
	}
	return assembly.Append(createdBy, v1.Time{Time: o.Created.UTC()}, made, content, cached) //nolint:wrapcheck // says what it does
}

// configure sets the labels and the command of a catalog image.
func (o *Options) configure(config *v1.ConfigFile, serves program) {
	config.Created = v1.Time{Time: o.Created.UTC()}
	labels := map[string]string{}
	maps.Copy(labels, config.Config.Labels)
	maps.Copy(labels, o.Labels)
	labels[ContentLabel] = "/" + configs
	config.Config.Labels = labels
	if serves != none {
		config.Config.Cmd = []string{"serve", "/" + configs, "--cache-dir=/" + cache}
		if config.Config.ExposedPorts == nil {
			config.Config.ExposedPorts = map[string]struct{}{"50051/tcp": {}}
		}
	}
}

// cacheLayers builds the cache layers of programs, each once.
type cacheLayers struct {
	options *Options
	index   string
	made    map[string]v1.Layer
}

// of returns the layer for a program.
func (c *cacheLayers) of(ctx context.Context, serves program) (v1.Layer, error) {
	if made, ok := c.made[string(serves)]; ok {
		return made, nil
	}
	entries := []layer.Entry{layer.Temporary("tmp")}
	if serves != opm {
		info, err := os.Stat(c.index)
		if err != nil {
			return nil, fmt.Errorf("reading the index: %w", err)
		}
		file, err := layer.Files(os.DirFS(filepath.Dir(c.index)), "")
		if err != nil {
			return nil, err //nolint:wrapcheck // names the file
		}
		at := slices.IndexFunc(file, func(e layer.Entry) bool { return e.Name == info.Name() })
		file[at].Name = path.Join(cache, info.Name())
		entries = append(entries, file[at])
	}
	if serves == opm || serves == none && c.options.WithOpmCache {
		cached, err := c.options.opmEntries(ctx)
		if err != nil {
			return nil, err
		}
		entries = append(entries, cached...)
	}
	made, err := layer.Write(filepath.Join(c.options.Scratch, "cache-"+string(serves)+".tar.gz"), entries, c.options.Created)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it does
	}
	c.made[string(serves)] = made
	return made, nil
}

// opmUser is the user ID of opm's images.
const opmUser = 1001

// opmEntries builds opm's cache.
func (o *Options) opmEntries(ctx context.Context) ([]layer.Entry, error) {
	dir := filepath.Join(o.Scratch, "opm-cache")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := o.OpmCache(ctx, dir, o.Catalog); err != nil {
			return nil, err
		}
	}
	entries, err := layer.Files(os.DirFS(dir), cache)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the files
	}
	// opm writes to its cache even when it only reads. The user that a cluster assigns has no entry
	// in /etc/passwd and belongs to root's group.
	for i := range entries {
		entries[i].Owner, entries[i].Mode = opmUser, entries[i].Mode|0o660
		if entries[i].Mode.IsDir() {
			entries[i].Mode |= 0o110
		}
	}
	return entries, nil
}
