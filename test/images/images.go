// Package images builds the catalog images for tests: like opm's, based on our registry, with
// nothing but content, and damaged ones. It pulls nothing.
package images

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles/image/assembly"
	"github.com/chandlery/chandlery/bundles/image/layer"
	"github.com/chandlery/chandlery/deploy/images"
)

// ContentLabel is the label with the folder of the catalog in a catalog image.
const ContentLabel = "operators.operatorframework.io.index.configs.v1"

// Folder is the folder of the catalog in the images of this package.
const Folder = "configs"

// cacheFolder is the folder of opm's cache.
const cacheFolder = "tmp/cache"

// opmUser is the user ID of opm's own images.
const opmUser = 1001

// epoch returns the time of all files. With a fixed time, the same content is the same image.
func epoch() time.Time { return time.Unix(0, 0).UTC() }

// Program returns an image of a static program with the path /AT, which it starts with the arguments.
func Program(binary, at string, args ...string) (v1.Image, error) {
	body, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading the program of an image: %w", err)
	}
	return assemble(v1.Config{Entrypoint: []string{"/" + at}, Cmd: args, User: user()},
		[]layer.Entry{layer.Temporary("tmp"), layer.Program(at, body)})
}

// Programs returns an image of static programs with the paths /bin/NAME. files has their files by name.
func Programs(config v1.Config, files map[string]string) (v1.Image, error) {
	entries := []layer.Entry{layer.Temporary("tmp")}
	for _, at := range slices.Sorted(maps.Keys(files)) {
		body, err := os.ReadFile(files[at])
		if err != nil {
			return nil, fmt.Errorf("reading the program %s of an image: %w", at, err)
		}
		entries = append(entries, layer.Program("bin/"+at, body))
	}
	return assemble(config, entries)
}

// Opm returns a catalog image like that of "opm generate dockerfile": the program opm, the catalog,
// and opm's cache of it. [FillCache] creates the cache.
func Opm(opm string, catalog, cache fs.FS) (v1.Image, error) {
	body, err := os.ReadFile(opm)
	if err != nil {
		return nil, fmt.Errorf("reading opm: %w", err)
	}
	content, err := layer.Tree(catalog, Folder)
	if err != nil {
		return nil, err
	}
	cached, err := layer.Tree(cache, cacheFolder)
	if err != nil {
		return nil, err
	}
	// opm writes to its cache even when it only reads. The user that a cluster assigns has no entry
	// in /etc/passwd and belongs to root's group.
	for i := range cached {
		cached[i].Owner, cached[i].Mode = opmUser, cached[i].Mode|0o660
		if cached[i].Mode.IsDir() {
			cached[i].Mode |= 0o110
		}
	}
	// The parent folder is also in its own layer. The last one applies.
	cached = append(cached, layer.Temporary("tmp"))
	return assemble(v1.Config{
		Entrypoint: []string{"/bin/opm"}, Cmd: []string{"serve", "/" + Folder, "--cache-dir=/" + cacheFolder},
		Labels: labels(), ExposedPorts: map[string]struct{}{"50051/tcp": {}}, User: strconv.Itoa(opmUser),
	}, []layer.Entry{layer.Temporary("tmp"), layer.Program("bin/opm", body)}, content, cached)
}

// Registry returns a catalog image based on our registry's image, with the catalog added.
func Registry(registry v1.Image, catalog fs.FS) (v1.Image, error) {
	config, err := registry.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the registry's image: %w", err)
	}
	labelled := config.DeepCopy()
	if labelled.Config.Labels == nil {
		labelled.Config.Labels = map[string]string{}
	}
	labelled.Config.Labels[ContentLabel] = "/" + Folder
	image, err := mutate.ConfigFile(registry, labelled)
	if err != nil {
		return nil, fmt.Errorf("labelling the image: %w", err)
	}
	entries, err := layer.Tree(catalog, Folder)
	if err != nil {
		return nil, err
	}
	content, err := layer.New(entries, epoch())
	if err != nil {
		return nil, fmt.Errorf("adding the catalog: %w", err)
	}
	return mutate.AppendLayers(image, content)
}

// Content returns an image with a catalog and no program.
func Content(catalog fs.FS) (v1.Image, error) {
	entries, err := layer.Tree(catalog, Folder)
	if err != nil {
		return nil, err
	}
	return assemble(v1.Config{Labels: labels()}, entries)
}

// Bundle returns the image of a bundle directory as "opm alpha bundle generate" describes it: the
// annotations of the bundle are labels of the image.
func Bundle(bundle fs.FS) (v1.Image, error) {
	text, err := fs.ReadFile(bundle, "metadata/annotations.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the annotations of a bundle: %w", err)
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(text, &metadata); err != nil {
		return nil, fmt.Errorf("decoding the annotations of a bundle: %w", err)
	}
	entries, err := layer.Tree(bundle, ".")
	if err != nil {
		return nil, err
	}
	return assemble(v1.Config{Labels: metadata.Annotations}, entries)
}

// Broken returns an image on our registry with a catalog that cannot be served: a channel without its package.
func Broken(registry v1.Image) (v1.Image, error) { return Registry(registry, brokenCatalog()) }

// WithoutCatalog returns an image that names the folder of its catalog and lacks the catalog.
func WithoutCatalog() (v1.Image, error) {
	return assemble(v1.Config{Labels: labels()}, []layer.Entry{layer.File("etc/motd", []byte("no catalog here\n"))})
}

// Local returns the image of one of our programs, chandlery/registry or chandlery/supervisor, for
// containers on this machine.
func Local(ctx context.Context, wanted string) (v1.Image, error) {
	all, err := images.Build(ctx, images.Options{
		Version: "test", Commit: "test", Created: epoch(), Platforms: []v1.Platform{images.Local()},
		Images: []string{wanted}, Fast: true,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // names the image
	}
	return all[0].Platforms[0].Image, nil
}

// Push pushes an image to a registry over plain HTTP, at HOST:PORT/NAME:TAG.
func Push(ctx context.Context, reference string, image v1.Image) (v1.Hash, error) {
	tag, err := name.NewTag(reference, name.Insecure)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("naming an image: %w", err)
	}
	if err := remote.Write(tag, image, remote.WithContext(ctx)); err != nil {
		return v1.Hash{}, fmt.Errorf("pushing %s: %w", reference, err)
	}
	return image.Digest() //nolint:wrapcheck // the image is in memory
}

func labels() map[string]string { return map[string]string{ContentLabel: "/" + Folder} }

func user() string { return fmt.Sprintf("%d:%d", images.User, images.User) }

// assemble returns an image for this machine, with one layer for each group of entries.
func assemble(config v1.Config, groups ...[]layer.Entry) (v1.Image, error) {
	platform := images.Local()
	layers := make([]v1.Layer, 0, len(groups))
	for _, entries := range groups {
		l, err := layer.New(entries, epoch())
		if err != nil {
			return nil, err //nolint:wrapcheck // names the file
		}
		layers = append(layers, l)
	}
	return assembly.Assemble("test/images", &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Created: v1.Time{Time: epoch()}, Config: config,
	}, layers...)
}
