package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// registry serves a catalog of one package.
type registry struct {
	options Options
	process *process.Process
}

// serve starts the registry with the first version and returns its address.
func (r *registry) serve(ctx context.Context) (string, error) {
	if err := r.publish(firstVersion); err != nil {
		return "", err
	}
	address, err := ports.Reserve(ctx)
	if err != nil {
		return "", err
	}
	r.process, err = r.options.start(ctx, "registry", "serve", r.dir(), "--host", "127.0.0.1", "--port", strconv.Itoa(address.Number),
		"--metrics-address", "0", "--pprof-addr", "0", "--termination-log", "")
	return address.Address(), err
}

// publish writes the catalog with a newest version.
func (r *registry) publish(version string) error {
	manifests, err := plainManifests(packageName)
	if err != nil {
		return err
	}
	bundles := []CatalogBundle{{Version: firstVersion, Manifests: manifests}}
	if version != firstVersion {
		bundles = append(bundles, CatalogBundle{Version: version, Manifests: updated(manifests, packageName, firstVersion, version)})
	}
	text, err := CatalogText(packageName, bundles...)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir(), 0o755); err != nil {
		return fmt.Errorf("making a folder for the catalog: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.dir(), packageName+".json"), text, 0o644); err != nil {
		return fmt.Errorf("writing the catalog: %w", err)
	}
	return nil
}

func (r *registry) dir() string { return filepath.Join(r.options.Dir, "catalog") }

// start starts a program.
func (o *Options) start(ctx context.Context, program string, args ...string) (*process.Process, error) {
	return process.Start(ctx, process.Spec{
		Name: program, Path: filepath.Join(o.Dir, program), Args: args, Log: filepath.Join(o.Dir, program+".log"),
	})
}
