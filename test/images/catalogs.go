package images

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing/fstest"
)

// FillCache creates the cache of a catalog with opm. [Opm] adds it to an image.
func FillCache(ctx context.Context, opm, catalog, cache string) error {
	out, err := exec.CommandContext(ctx, opm, "serve", catalog, "--cache-dir", cache, "--cache-only",
		"--termination-log=", "--pprof-addr=").CombinedOutput()
	if err != nil {
		return fmt.Errorf("making opm's cache of %s: %w\n%s", catalog, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// brokenCatalog returns a catalog that names a missing package.
func brokenCatalog() fs.FS {
	const text = "schema: olm.channel\nname: stable\npackage: nowhere\nentries:\n- name: nowhere.v1.0.0\n"
	return fstest.MapFS{"nowhere/catalog.yaml": &fstest.MapFile{Data: []byte(text)}}
}
