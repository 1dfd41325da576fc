package olmpeer

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/oracle"
	"github.com/chandlery/chandlery/test/programs"
)

// The names of the images in a registry.
const (
	opmRepository       = "olm/opm:latest"
	utilitiesRepository = "olm/utilities:latest"
)

// unpackTimeout is how long a Job may unpack a bundle image, shorter than the default of ten minutes.
const unpackTimeout = 45 * time.Second

// imageUser is the user of OLM's images and of opm's.
const imageUser = "1001:1001"

// Pods are the images of the pods that OLM creates.
type Pods struct {
	// Opm serves catalogs, also from ConfigMaps, and reads bundles.
	Opm v1.Image
	// Utilities has OLM's programs that copy the content of images.
	Utilities v1.Image
	// registry is the host of the images.
	registry string
}

// BuildPods builds the images unless the cache has their programs. It builds the programs of this repository into a
// folder. It writes progress.
func BuildPods(ctx context.Context, dir string, progress io.Writer) (*Pods, error) {
	if err := programs.Build(ctx, dir, "./test/oracle/healthprobe"); err != nil {
		return nil, err //nolint:wrapcheck // names the programs
	}
	utilities, err := buildUtilities(ctx, dir, progress)
	if err != nil {
		return nil, fmt.Errorf("building OLM's utilities: %w", err)
	}
	opm, err := oracle.Build(ctx, progress)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the program
	}
	server, err := oracle.BuildConfigMapServer(ctx, progress)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the program
	}
	catalog := map[string]string{
		"opm": opm, oracle.ConfigMapServer: server, "grpc_health_probe": filepath.Join(dir, "healthprobe"),
	}
	p := &Pods{}
	if p.Utilities, err = images.Programs(v1.Config{User: imageUser}, utilities); err != nil {
		return nil, err //nolint:wrapcheck // names the program
	}
	// The server of ConfigMaps writes its database in the working directory.
	p.Opm, err = images.Programs(v1.Config{
		Entrypoint: []string{"/bin/opm"}, Cmd: []string{"serve", "/" + images.Folder}, User: imageUser, WorkingDir: "/tmp",
	}, catalog)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the program
	}
	return p, nil
}

// buildUtilities returns the files of OLM's utilities by their names. It builds the program cp into a folder.
func buildUtilities(ctx context.Context, into string, progress io.Writer) (map[string]string, error) {
	if err := programs.Build(ctx, into, "./test/oracle/olmpeer/cp"); err != nil {
		return nil, err //nolint:wrapcheck // names the program
	}
	dir, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the module
	}
	module := buildcache.Module{
		Name: "olm-utilities",
		Dir:  dir,
		Programs: []buildcache.Program{
			{Name: "copy-content", Package: peerModule + "/cmd/copy-content"},
			{Name: "cpb", Package: peerModule + "/util/cpb"},
		},
		Tags: buildTags(),
	}
	binaries, err := buildcache.Build(ctx, module, progress)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the program
	}
	files := map[string]string{"cp": filepath.Join(into, "cp")}
	for _, p := range module.Programs {
		files[p.Name] = filepath.Join(binaries, p.Name)
	}
	return files, nil
}

// Push pushes the images to a registry over plain HTTP. OLM's pods get them from there.
func (p *Pods) Push(ctx context.Context, registry string) error {
	p.registry = registry
	for repository, image := range map[string]v1.Image{opmRepository: p.Opm, utilitiesRepository: p.Utilities} {
		if _, err := images.Push(ctx, registry+"/"+repository, image); err != nil {
			return err //nolint:wrapcheck // names the image
		}
	}
	return nil
}

// flags returns flags of the catalog program.
func (p *Pods) flags() []string {
	opm := p.registry + "/" + opmRepository
	return []string{
		"--configmapServerImage", opm, "--opmImage", opm, "--util-image", p.registry + "/" + utilitiesRepository,
		"--bundle-unpack-timeout", unpackTimeout.String(),
	}
}
