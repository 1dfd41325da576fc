package images

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/chandlery/chandlery/bundles/image/assembly"
	"github.com/chandlery/chandlery/bundles/image/layer"
)

// Prefix is the prefix of the image names.
const Prefix = "chandlery/"

// User is the ID of the user and the group that the programs run as.
const User = 65532

// Options select what [Build] builds.
type Options struct {
	// Dir is a directory of the checkout to build from; empty for the working directory.
	Dir string
	// Version and Commit are reported by the programs and written to the labels.
	Version, Commit string
	// Created is the time of the images and their files. It is the time of the commit, not of the
	// build, because a repeated build must produce the same images.
	Created time.Time
	// Platforms are the platforms to build for; empty for all supported platforms.
	Platforms []v1.Platform
	// Images are the names of the images to build; empty for all.
	Images []string
	// Fast compresses programs in a tenth of the time, to larger images. It is for images that are not published.
	Fast bool

	// roots is the module that provides the certificates.
	roots debug.Module
}

// createdBy is the creator in the history of the images.
const createdBy = modulePath + "/deploy/images"

// Platforms returns the supported platforms.
func Platforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
}

// Local returns the platform of containers on this machine.
func Local() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// Image is a program's image for one or more platforms.
type Image struct {
	// Name is the name of the image, without registry and tag.
	Name string
	// Index is the image index, with one manifest for each platform.
	Index v1.ImageIndex
	// Platforms are the images in Index, in the same order.
	Platforms []PlatformImage
}

// PlatformImage is an image for one platform.
type PlatformImage struct {
	Platform v1.Platform
	Image    v1.Image
	// SBOM lists the components of the image. It refers to the image.
	SBOM v1.Image
}

// Build builds the images of the selected programs.
func Build(ctx context.Context, o Options) ([]Image, error) {
	if len(o.Platforms) == 0 {
		o.Platforms = Platforms()
	}
	base, err := baseLayer(o.Created)
	if err != nil {
		return nil, err
	}
	if o.roots, err = o.certificatesVersion(ctx); err != nil {
		return nil, err
	}
	wanted, err := o.programs()
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, p := range wanted {
		image, err := o.build(ctx, p, base)
		if err != nil {
			return nil, fmt.Errorf("making the image %s: %w", Prefix+p.name, err)
		}
		all = append(all, image)
	}
	return all, nil
}

// programs returns the programs whose images are selected.
func (o Options) programs() ([]program, error) {
	if len(o.Images) == 0 {
		return programs(), nil
	}
	var wanted []program
	for _, name := range o.Images {
		i := slices.Index(Names(), name)
		if i < 0 {
			return nil, fmt.Errorf("there is no image %s; there are %s", name, strings.Join(Names(), ", "))
		}
		wanted = append(wanted, programs()[i])
	}
	return wanted, nil
}

func (o Options) build(ctx context.Context, p program, base v1.Layer) (Image, error) {
	image := Image{Name: Prefix + p.name}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range o.Platforms {
		compiled, err := o.compile(ctx, p.name, platform)
		if err != nil {
			return Image{}, err
		}
		made, err := o.platformImage(p, platform, base, compiled)
		if err != nil {
			return Image{}, fmt.Errorf("%s: %w", platform, err)
		}
		image.Platforms = append(image.Platforms, made)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: made.Image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	annotated, ok := mutate.Annotations(index, o.labels(p)).(v1.ImageIndex)
	if !ok {
		return Image{}, fmt.Errorf("annotating the index gave %T", annotated)
	}
	image.Index = annotated
	return image, nil
}

func (o Options) platformImage(p program, platform v1.Platform, base v1.Layer, compiled binary) (PlatformImage, error) {
	top, err := o.programLayer(p, compiled.body)
	if err != nil {
		return PlatformImage{}, err
	}
	config := &v1.ConfigFile{
		Architecture: platform.Architecture, OS: platform.OS, Variant: platform.Variant,
		Created: v1.Time{Time: o.Created.UTC()},
		Config: v1.Config{
			User:       fmt.Sprintf("%d:%d", User, User),
			Entrypoint: []string{"/" + p.name}, Cmd: p.command,
			ExposedPorts: set(p.ports), Labels: o.labels(p),
			Env:        []string{"PATH=/bin:/", "SSL_CERT_FILE=/" + certificatesFile},
			WorkingDir: "/",
		},
	}
	image, err := assembly.Assemble(createdBy, config, base, top)
	if err != nil {
		return PlatformImage{}, err
	}
	sbom, err := o.sbom(p, platform, image, compiled)
	if err != nil {
		return PlatformImage{}, err
	}
	return PlatformImage{Platform: platform, Image: image, SBOM: sbom}, nil
}

// labels returns the labels that the OCI image specification recommends.
func (o Options) labels(p program) map[string]string {
	const source = "https://" + modulePath
	labels := map[string]string{
		"title": p.title, "description": p.description, "version": o.Version, "revision": o.Commit,
		"created": o.Created.UTC().Format(time.RFC3339), "licenses": "Apache-2.0",
		"url": source, "source": source, "documentation": source + "/blob/main/docs/operations.md",
	}
	full := make(map[string]string, len(labels))
	for name, value := range maps.All(labels) {
		full["org.opencontainers.image."+name] = value
	}
	return full
}

// baseLayer returns the layer that all images share and that rarely changes.
func baseLayer(created time.Time) (v1.Layer, error) {
	roots, err := certificates()
	if err != nil {
		return nil, err
	}
	return layer.New([]layer.Entry{
		layer.File("etc/passwd", fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/tmp:/sbin/nologin\n", User, User)),
		layer.File("etc/group", fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", User)),
		layer.File("etc/nsswitch.conf", []byte("hosts: files dns\n")),
		layer.File(certificatesFile, roots),
		layer.Temporary("tmp"),
	}, created)
}

func (o Options) programLayer(p program, body []byte) (v1.Layer, error) {
	entries := []layer.Entry{layer.Program(p.name, body)}
	for _, link := range p.links {
		entries = append(entries, layer.Link(link, strings.Repeat("../", strings.Count(link, "/"))+p.name))
	}
	if o.Fast {
		return layer.NewFast(entries, o.Created)
	}
	return layer.New(entries, o.Created)
}

func set(names []string) map[string]struct{} {
	all := make(map[string]struct{}, len(names))
	for _, name := range names {
		all[name] = struct{}{}
	}
	return all
}

// Names returns the names of the images, in the order in which [Build] returns them.
func Names() []string {
	var names []string
	for _, p := range programs() {
		names = append(names, Prefix+p.name)
	}
	return names
}
