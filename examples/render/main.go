// Command render writes the sample catalog, one file a package, into a folder
// (default examples/catalog): the last step of `make generate`.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chandlery/chandlery/examples"
)

func main() {
	dir := flag.String("output", "examples/catalog", "folder to write the catalog to")
	flag.Parse()
	if err := render(examples.Bundles(), *dir); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

// render writes DIR/PACKAGE/catalog.yaml for each package of the tree.
func render(tree fs.FS, dir string) error {
	packages, err := examples.Packages(tree)
	if err != nil {
		return err
	}
	for _, pkg := range packages {
		versions, err := examples.Versions(tree, pkg)
		if err != nil {
			return err
		}
		text, err := examples.Render(tree, pkg, versions)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, pkg, "catalog.yaml")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("making the folder of package %s: %w", pkg, err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return fmt.Errorf("writing the catalog of package %s: %w", pkg, err)
		}
	}
	return nil
}
