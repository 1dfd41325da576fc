// Package realcatalogs finds the real catalogs that tests and benchmarks read: archives NAME.tar.xz
// beside the checkout (../shared/catalogs) or in the folder that $CHANDLERY_CATALOGS names. They
// are not part of the repository.
package realcatalogs

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/filelock"
)

// Names of the catalogs.
const (
	// Metadata has bundles with an image and with the metadata of their ClusterServiceVersion.
	Metadata = "community-metadata"
	// Objects has bundles without an image and with all their manifests.
	Objects = "community-objects"
)

// Variable is the environment variable that names the folder of the archives.
const Variable = "CHANDLERY_CATALOGS"

// ErrNone means that there is no archive of a catalog.
var ErrNone = errors.New("no archive of the catalog")

// Dir returns the directory of a catalog for a test or benchmark. Without an archive it skips the
// test, or fails it if the variable CI is set, because CI has the archives.
func Dir(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := Find(tb.Context(), name)
	if errors.Is(err, ErrNone) && os.Getenv("CI") == "" {
		tb.Skipf("runs without the real catalog: %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Find returns the directory of a catalog. It unpacks the archive once into the cache of package
// buildcache. The error wraps [ErrNone] if there is no archive.
func Find(ctx context.Context, name string) (string, error) {
	archive, info, err := find(name)
	if err != nil {
		return "", err
	}
	root, err := buildcache.Root()
	if err != nil {
		return "", fmt.Errorf("finding a place for catalog %q: %w", name, err)
	}
	parent := filepath.Join(root, "catalogs")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("making a place for catalog %q: %w", name, err)
	}
	// Another archive of the same name gets its own directory.
	key := fmt.Sprintf("%s-%x-%x", name, info.Size(), info.ModTime().Unix())
	dir := filepath.Join(parent, key)
	lock, err := filelock.Acquire(ctx, dir+".lock", func() {})
	if err != nil {
		return "", fmt.Errorf("waiting for catalog %q: %w", name, err)
	}
	defer lock.Release() //nolint:errcheck // the lock goes with the process
	content := filepath.Join(dir, name)
	if _, err := os.Stat(content); err == nil {
		return content, nil
	}
	if err := unpackInto(archive, dir); err != nil {
		return "", fmt.Errorf("unpacking catalog %q: %w", name, err)
	}
	return content, nil
}

func find(name string) (string, fs.FileInfo, error) {
	folder := os.Getenv(Variable)
	if folder == "" {
		module, err := buildcache.SourceDir(".")
		if err != nil {
			return "", nil, fmt.Errorf("finding catalog %q: %w", name, err)
		}
		folder = filepath.Join(module, "..", "shared", "catalogs")
	}
	archive := filepath.Join(folder, name+".tar.xz")
	info, err := os.Stat(archive)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("%w: %s (set %s to the folder that holds it)", ErrNone, archive, Variable)
	}
	if err != nil {
		return "", nil, fmt.Errorf("finding catalog %q: %w", name, err)
	}
	return archive, info, nil
}

// unpackInto unpacks an archive. The directory gets its name after it is complete.
func unpackInto(archive, dir string) error {
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "unpack-")
	if err != nil {
		return fmt.Errorf("making directory: %w", err)
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // it has been renamed, or is rubbish in a cache
	if err := unpack(archive, temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, dir); err != nil {
		return fmt.Errorf("moving directory into place: %w", err)
	}
	return nil
}

func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("opening archive: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	decompressed, err := xz.NewReader(bufio.NewReader(file))
	if err != nil {
		return fmt.Errorf("reading archive: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening directory: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written through it any more
	entries := tar.NewReader(decompressed)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading archive: %w", err)
		}
		if err := unpackEntry(root, header, entries); err != nil {
			return fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
	default:
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
