package nodes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/oracle"
)

// kind is the content of a catalog image.
type kind int

const (
	// ownServer is the sample catalog on our registry.
	ownServer kind = iota
	// otherContent is a part of it.
	otherContent
	// opmServer is the sample catalog in an image like opm's.
	opmServer
	// contentOnly has no program.
	contentOnly
	// brokenContent is a catalog that cannot be served.
	brokenContent
	// noContent names the folder of its catalog and lacks the catalog.
	noContent
	// otherPort is the sample catalog, served on an unexpected port.
	otherPort
)

// pushCatalog builds a catalog image and pushes it to the bed's registry. It returns the reference
// for nodes and supervisors.
func pushCatalog(t *testing.T, s *failover.Scene, repository string, what kind) string {
	t.Helper()
	image, err := makeCatalog(t, what)
	must(t, err)
	reference := s.Bed.Images.Address() + "/" + repository
	_, err = images.Push(t.Context(), reference, image)
	must(t, err)
	return reference
}

func makeCatalog(t *testing.T, what kind) (v1.Image, error) {
	t.Helper()
	samples, err := buildcache.SourceDir("examples/catalog")
	must(t, err)
	registry, err := registryImage()
	must(t, err)
	switch what {
	case ownServer:
		return images.Registry(registry, os.DirFS(samples))
	case otherContent:
		part := t.TempDir()
		must(t, os.CopyFS(filepath.Join(part, samplePackage), os.DirFS(filepath.Join(samples, samplePackage))))
		return images.Registry(registry, os.DirFS(part))
	case opmServer:
		opm, err := oracle.Build(t.Context(), os.Stderr)
		must(t, err)
		cache := t.TempDir()
		must(t, images.FillCache(t.Context(), opm, samples, cache))
		return images.Opm(opm, os.DirFS(samples), os.DirFS(cache))
	case contentOnly:
		return images.Content(os.DirFS(samples))
	case brokenContent:
		return images.Broken(registry)
	case noContent:
		return images.WithoutCatalog()
	case otherPort:
		image, err := images.Registry(registry, os.DirFS(samples))
		must(t, err)
		file, err := image.ConfigFile()
		must(t, err)
		config := *file.Config.DeepCopy()
		config.Cmd = append(config.Cmd, "--port", "50052")
		return mutate.Config(image, config)
	}
	return nil, fmt.Errorf("there is no kind of catalog %d", what)
}

// registryImage is the image of our registry, built once.
var registryImage = sync.OnceValues(func() (v1.Image, error) {
	return images.Local(context.Background(), "chandlery/registry")
})
