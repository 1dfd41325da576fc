package source

import (
	"cmp"
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
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
)

// Dir is a catalog in a directory of the file system.
type Dir struct {
	// Path of the directory.
	Path string
	// AllowEmpty accepts a directory without any package. Such a directory usually is a wrong path
	// or an unmounted volume.
	AllowEmpty bool
	// Options bound the content of the directory.
	Options fbc.Options
	// Filter selects the part of the content to keep.
	Filter Filter
	// Cache stores the index.
	Cache Cache
	// Progress is called while the index is built; see [index.Options].
	Progress func(done, all int)
}

// Load returns the index of the catalog from the cache, or builds it. The error holds
// [bundles.Problems] when the content cannot be served.
func (d Dir) Load(ctx context.Context) (*index.Index, error) { return d.load(ctx, true) }

// LoadFresh does what [Dir.Load] does and ignores the cache.
func (d Dir) LoadFresh(ctx context.Context) (*index.Index, error) { return d.load(ctx, false) }

func (d Dir) load(ctx context.Context, trusting bool) (*index.Index, error) {
	if err := checkDir(d.Path); err != nil {
		return nil, err
	}
	d.Cache = d.cache(ctx)
	root, err := openRoot(d.Path)
	if err != nil {
		return nil, err
	}
	files, err := list(root)
	if err != nil {
		// The loader reports the error.
		files = nil
	}
	if err == nil && trusting {
		if x := d.Cache.load(ctx, root, files); x != nil {
			return x, d.checkEmpty(x.Stats().Packages)
		}
	}
	x, err := d.build(ctx, root, files)
	if problems, ok := errors.AsType[bundles.Problems](err); ok {
		locate(problems, d.Path)
	}
	if err != nil {
		return nil, err
	}
	return x, d.checkEmpty(x.Stats().Packages)
}

// cache returns the cache for the selected part of the content.
func (d Dir) cache(ctx context.Context) Cache {
	out := d.Cache.outside(ctx, d.Path)
	out.key = d.Filter.key()
	return out
}

// Verify reports whether an index matches the directory, by reading all of both. An index that does
// not record its source was built by this process and matches.
func (d Dir) Verify(ctx context.Context, x *index.Index) (bool, error) {
	then := x.Sources()
	if len(then) == 0 {
		return true, nil
	}
	if err := x.Check(); err != nil {
		return false, nil //nolint:nilerr // that is the answer
	}
	root, err := openRoot(d.Path)
	if err != nil {
		return false, err
	}
	files, err := list(root)
	if err != nil {
		return false, err
	}
	if !slices.EqualFunc(then, files, sameSize) {
		return false, nil
	}
	now, err := sumFiles(ctx, root, files)
	return err == nil && slices.EqualFunc(then, now, sameContent), err
}

// checkEmpty returns an error for a catalog without any package.
func (d Dir) checkEmpty(packages int) error {
	if packages > 0 || d.AllowEmpty {
		return nil
	}
	return bundles.Problems{{
		File: d.Path, Message: "the catalog directory holds no package",
		Remedy: "check the path and what is mounted there, or allow it with --allow-empty",
	}}
}

// Catalog reads and validates the catalog.
func (d Dir) Catalog(ctx context.Context) (*bundles.Catalog, error) {
	if err := checkDir(d.Path); err != nil {
		return nil, err
	}
	root, err := openRoot(d.Path)
	if err != nil {
		return nil, err
	}
	catalog, err := fbc.Load(ctx, root, d.Options)
	var problems bundles.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, fmt.Errorf("reading catalog: %w", err)
	}
	locate(problems, d.Path)
	problems = append(problems, bundles.AsProblems(catalog.Validate())...)
	if err := problems.OrNil(); err != nil {
		return nil, fmt.Errorf("checking catalog: %w", err)
	}
	if err := d.checkEmpty(len(catalog.Packages)); err != nil {
		return nil, err
	}
	return catalog, nil
}

// openRoot returns the current directory at a path. If the path is a symbolic link that is switched to
// another directory, reads stay in the first directory.
func openRoot(path string) (fs.FS, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("resolving directory %q: %w", path, err)
	}
	return os.DirFS(resolved), nil
}

// checkDir returns an error for a path that is not a directory.
func checkDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bundles.Problems{{
			File: path, Message: "there is no such directory", Remedy: "check the path and what is mounted there",
		}}
	case err != nil:
		return bundles.Problems{{
			File: path, Message: fmt.Sprintf("cannot be read: %v", errors.Unwrap(err)),
			Remedy: "give the user that serves the catalog permission to read it", Unreadable: true,
		}}
	case !info.IsDir():
		return bundles.Problems{{
			File: path, Message: "is not a directory", Remedy: "name the directory that the catalog's files lie in",
		}}
	}
	return nil
}

// locate sets the path of problems with the root itself.
func locate(problems bundles.Problems, path string) {
	for i := range problems {
		if problems[i].File == "." {
			problems[i].File = path
		}
	}
}

// Fingerprint returns a text that changes when files of the directory are added, removed, written
// or replaced, and when the path points to another directory. It reads names and file metadata, not
// contents, so frequent calls are cheap.
func (d Dir) Fingerprint() (string, error) {
	root, err := openRoot(d.Path)
	if err != nil {
		return "", err
	}
	seen, err := scan(root)
	if err != nil {
		return "", fmt.Errorf("looking at directory %q: %w", d.Path, err)
	}
	return seen.fingerprint, nil
}

// Warm returns the cached index of the current directory and the fingerprint of the directory,
// after one scan; nil for none.
func (d Dir) Warm(ctx context.Context) (x *index.Index, fingerprint string) {
	d.Cache = d.cache(ctx)
	if d.Cache.Dir == "" || checkDir(d.Path) != nil {
		return nil, ""
	}
	root, err := openRoot(d.Path)
	if err != nil {
		return nil, ""
	}
	seen, err := scan(root)
	if err != nil || !seen.complete {
		return nil, ""
	}
	if x = d.Cache.load(ctx, root, seen.files); x == nil || d.checkEmpty(x.Stats().Packages) != nil {
		return nil, ""
	}
	return x, seen.fingerprint
}

// listing is the metadata of a directory.
type listing struct {
	fingerprint string
	// files are sorted by name.
	files []index.SourceFile
	// complete is set if every file and directory could be read.
	complete bool
}

// scan lists all files below a root.
func scan(root fs.FS) (*listing, error) {
	digest, seen := sha256.New(), &listing{complete: true}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && name != "." {
			return nil
		}
		info := infoOf(root, name, err)
		record(digest, name, info)
		switch {
		case err != nil:
			seen.complete = false
		case name != ".":
			seen.files = append(seen.files, sourceFile(name, info))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	slices.SortFunc(seen.files, func(a, b index.SourceFile) int { return cmp.Compare(a.Name, b.Name) })
	seen.fingerprint = hex.EncodeToString(digest.Sum(nil))
	return seen, nil
}

// infoOf returns the metadata of a file, or nil if it cannot be read. The fingerprint covers such
// files and changes when they become readable.
func infoOf(root fs.FS, name string, err error) fs.FileInfo {
	if err != nil {
		return nil
	}
	// Follow symbolic links, because the kubelet updates mounted volumes by switching links.
	info, err := fs.Stat(root, name)
	if err != nil {
		return nil
	}
	return info
}

// noContent is the size of something other than a regular file, such as a link to a directory, a
// broken link or a pipe. The fingerprint covers it, but there is nothing to read.
const noContent = -1

// sourceFile returns what an index records about a file.
func sourceFile(name string, info fs.FileInfo) index.SourceFile {
	if info == nil || !info.Mode().IsRegular() {
		return index.SourceFile{Name: name, Size: noContent}
	}
	return index.SourceFile{Name: name, Size: info.Size(), ModTime: info.ModTime().UnixNano()}
}

// list returns the files below a root, or an error if a directory cannot be read.
func list(root fs.FS) ([]index.SourceFile, error) {
	seen, err := scan(root)
	if err == nil && !seen.complete {
		err = errUnlisted
	}
	if err != nil {
		return nil, err
	}
	return seen.files, nil
}

var errUnlisted = errors.New("not all files can be looked at")

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
