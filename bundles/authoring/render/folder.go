package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/chandlery/chandlery/bundles"
)

// WriteDirectory writes a source to a directory, with a file for each package: PACKAGE/catalog.json
// or PACKAGE/catalog.yaml. The directory must not exist or must be empty. It appears after it is
// complete.
func WriteDirectory(ctx context.Context, dir string, format Format, source Source) (err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return bundles.Problems{{File: dir, Message: "is not an empty directory", Remedy: "name one that does not exist yet, or remove it"}}
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // catalogs are there to be read
		return fmt.Errorf("creating %s: %w", parent, err)
	}
	unfinished, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".unfinished-*")
	if err != nil {
		return fmt.Errorf("creating the catalog: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(unfinished)) }()
	if err := writeFiles(ctx, unfinished, format, source); err != nil {
		return err
	}
	if err := os.Chmod(unfinished, 0o755); err != nil { //nolint:gosec // catalogs are there to be read
		return fmt.Errorf("creating the catalog: %w", err)
	}
	// The rename replaces an empty directory.
	if err := os.Rename(unfinished, dir); err != nil {
		return fmt.Errorf("creating the catalog: %w", err)
	}
	return nil
}

func writeFiles(ctx context.Context, dir string, format Format, source Source) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("creating the catalog: %w", err)
	}
	defer root.Close() //nolint:errcheck // what was written has been closed
	return EachText(ctx, format, source, func(name string, text []byte) error {
		file := path.Join(name, "catalog."+string(format))
		if name != "" {
			if err := root.Mkdir(name, 0o755); err != nil {
				return fmt.Errorf("creating a folder for package %q: %w", name, err)
			}
		}
		if err := root.WriteFile(file, text, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
		return nil
	})
}
