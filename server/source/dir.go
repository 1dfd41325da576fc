package source

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
)

// Dir is a catalog in a directory of the file system.
type Dir struct {
	// Path of the directory.
	Path string
	// AllowEmpty accepts a directory without any package. Mostly such a
	// directory is a volume that was not mounted or a wrong path.
	AllowEmpty bool
	// Options bound what the directory may hold.
	Options fbc.Options
}

// Load reads, validates and indexes the catalog. The error holds
// [bundles.Problems] when the content cannot be served.
func (d Dir) Load(ctx context.Context) (*index.Index, error) {
	catalog, err := d.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	x, err := index.Build(ctx, catalog)
	if err != nil {
		return nil, fmt.Errorf("indexing catalog: %w", err)
	}
	return x, nil
}

// Catalog reads and validates the catalog.
func (d Dir) Catalog(ctx context.Context) (*bundles.Catalog, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	catalog, err := fbc.Load(ctx, root, d.Options)
	var problems bundles.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, fmt.Errorf("reading catalog: %w", err)
	}
	d.locate(problems)
	problems = append(problems, bundles.AsProblems(catalog.Validate())...)
	if err := problems.OrNil(); err != nil {
		return nil, fmt.Errorf("checking catalog: %w", err)
	}
	if len(catalog.Packages) == 0 && !d.AllowEmpty {
		return nil, bundles.Problems{{
			File: d.Path, Message: "the catalog directory holds no package",
			Remedy: "check the path and what is mounted there, or allow it with --allow-empty",
		}}
	}
	return catalog, nil
}

// root returns the directory as it is now: where the path is a symbolic link
// that somebody switches to another directory, what is read through the root
// stays that of one directory.
func (d Dir) root() (fs.FS, error) {
	resolved, err := filepath.EvalSymlinks(d.Path)
	if err != nil {
		return nil, fmt.Errorf("resolving directory %q: %w", d.Path, err)
	}
	return os.DirFS(resolved), nil
}

// check reports a path that is no directory.
func (d Dir) check() error {
	info, err := os.Stat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bundles.Problems{{
			File: d.Path, Message: "there is no such directory", Remedy: "check the path and what is mounted there",
		}}
	case err != nil:
		return bundles.Problems{{
			File: d.Path, Message: fmt.Sprintf("cannot be read: %v", errors.Unwrap(err)),
			Remedy: "give the user that serves the catalog permission to read it", Unreadable: true,
		}}
	case !info.IsDir():
		return bundles.Problems{{
			File: d.Path, Message: "is not a directory", Remedy: "name the directory that the catalog's files lie in",
		}}
	}
	return nil
}

// locate gives problems with the root itself a path that means something.
func (d Dir) locate(problems bundles.Problems) {
	for i := range problems {
		if problems[i].File == "." {
			problems[i].File = d.Path
		}
	}
}

// Fingerprint returns a text that changes when files of the directory are
// added, removed, written or replaced, and when the path leads to another
// directory. It looks at names and what the file system knows about the files,
// not into them, so that asking often is cheap.
func (d Dir) Fingerprint() (string, error) {
	digest := sha256.New()
	root, err := d.root()
	if err != nil {
		return "", err
	}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			// What cannot be read is part of the picture: it changes when it
			// becomes readable.
			record(digest, name, nil)
			return nil //nolint:nilerr // it has been recorded
		}
		if entry.IsDir() && name != "." {
			return nil
		}
		// Follow symbolic links: mounted volumes are updated by changing them.
		info, err := fs.Stat(root, name)
		if err != nil {
			info = nil
		}
		record(digest, name, info)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("looking at directory %q: %w", d.Path, err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// record adds a file to a digest; info is nil for one that cannot be read.
func record(digest hash.Hash, name string, info fs.FileInfo) {
	text := binary.AppendUvarint(nil, uint64(len(name)))
	text = append(text, name...)
	if info != nil {
		text = binary.AppendVarint(text, info.Size())
		text = binary.AppendVarint(text, info.ModTime().UnixNano())
		text = binary.AppendUvarint(text, uint64(info.Mode()))
		text = appendIdentity(text, info)
	}
	digest.Write(text)
}
