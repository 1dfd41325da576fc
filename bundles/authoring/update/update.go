// Package update changes a catalog directory, a catalog file or a template in place. It reads the
// files of a package, changes them with package edit, checks the result, and writes all of them or
// none.
package update

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/catalogdir"
	"github.com/chandlery/chandlery/bundles/authoring/edit"
	"github.com/chandlery/chandlery/bundles/fbc"
)

// Target is the catalog or template to change.
type Target struct {
	// Path is the path of a catalog directory, a catalog file or a template.
	Path string
	// Package is the name of the package.
	Package string
	// DryRun does not write the files.
	DryRun bool
}

// Result is the change that was made, or would be made.
type Result struct {
	// Files are the paths of the changed files, in byte order.
	Files []string
	// Diff is the change in the unified format.
	Diff string
}

// Run changes the files of the package. It waits for other processes that change the same catalog.
// If it returns an error, no file has changed. Problems of the catalog are [bundles.Problems].
func Run(ctx context.Context, t Target, change func(*edit.Files) error) (result *Result, err error) {
	root, only, err := t.find()
	if err != nil {
		return nil, err
	}
	c, err := catalogdir.Begin(ctx, root)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the directory
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	result, err = t.run(ctx, c, root, only, change)
	if problems, ok := errors.AsType[bundles.Problems](err); ok {
		return nil, problems.Below(root)
	}
	return result, err
}

// find returns the directory of the catalog and, if the target is a single file, the file.
func (t *Target) find() (root, only string, err error) {
	info, err := os.Stat(t.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", bundles.Problems{{File: t.Path, Message: "there is no such directory or file", Remedy: "create the catalog with 'catalog init PACKAGE --catalog DIR'"}}
	case err != nil:
		return "", "", fmt.Errorf("finding the catalog: %w", err)
	case info.IsDir():
		return t.Path, "", nil
	}
	return filepath.Dir(t.Path), filepath.Base(t.Path), nil
}

func (t *Target) run(ctx context.Context, c *catalogdir.Change, root, only string, change func(*edit.Files) error) (*Result, error) {
	names := []string{only}
	if only == "" {
		var err error
		if names, err = filesOf(ctx, root, t.Package); err != nil {
			return nil, err
		}
	}
	texts, err := readAll(c, names)
	if err != nil {
		return nil, err
	}
	files, err := edit.NewFiles(t.Package, texts)
	if err != nil {
		return nil, err //nolint:wrapcheck // names file and line
	}
	if err := change(files); err != nil {
		return nil, err
	}
	if _, template := files.Template(); template == "" {
		if err := files.Validate(ctx); err != nil {
			return nil, err //nolint:wrapcheck // names file and line
		}
	}
	result, err := write(c, root, texts, files.Changed())
	if err != nil || t.DryRun {
		return result, err
	}
	return result, c.Commit() //nolint:wrapcheck // says what it does
}

// filesOf returns the names of the files that hold objects of a package, in byte order.
func filesOf(ctx context.Context, root, pkg string) (names []string, err error) {
	reader, err := fbc.Open(ctx, os.DirFS(root), fbc.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	if err := reader.Problems().OrNil(); err != nil {
		return nil, err //nolint:wrapcheck // names file and line
	}
	objects, err := reader.Objects(ctx, pkg, nil)
	if err != nil {
		return nil, err //nolint:wrapcheck // names file and line
	}
	for i := range objects {
		names = append(names, objects[i].Origin.File)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func readAll(c *catalogdir.Change, names []string) (map[string][]byte, error) {
	texts := map[string][]byte{}
	for _, name := range names {
		text, err := c.Read(name)
		if err != nil {
			return nil, err //nolint:wrapcheck // names the file
		}
		texts[name] = text
	}
	return texts, nil
}

// write puts the changed files and returns the differences.
func write(c *catalogdir.Change, root string, before, after map[string][]byte) (*Result, error) {
	var (
		result Result
		diff   strings.Builder
	)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if bytes.Equal(before[name], after[name]) {
			continue
		}
		if err := c.Put(name, after[name]); err != nil {
			return nil, err //nolint:wrapcheck // names the file
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		result.Files = append(result.Files, path)
		old := path
		if before[name] == nil {
			old = os.DevNull
		}
		diff.WriteString(udiff.Unified(old, path, string(before[name]), string(after[name])))
	}
	result.Diff = diff.String()
	return &result, nil
}

// Create adds a file with objects to a catalog directory, which it creates if it is missing. It
// returns an error if the file or the package exists.
func Create(ctx context.Context, dir, pkg, name string, text []byte) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // catalogs are there to be read
		return "", fmt.Errorf("creating the catalog: %w", err)
	}
	c, err := catalogdir.Begin(ctx, dir)
	if err != nil {
		return "", err //nolint:wrapcheck // names the directory
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	holding, err := filesOf(ctx, dir, pkg)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.FromSlash(name))
	if len(holding) > 0 {
		return "", bundles.Problems{{
			File: filepath.Join(dir, holding[0]), Package: pkg, Message: "the catalog has the package already",
			Remedy: "choose another name, or change the file",
		}}
	}
	if _, err := os.Lstat(path); err == nil {
		return "", bundles.Problems{{File: path, Package: pkg, Message: "there is such a file already", Remedy: "move it away"}}
	}
	if err := c.Put(name, text); err != nil {
		return "", err //nolint:wrapcheck // names the file
	}
	return path, c.Commit() //nolint:wrapcheck // says what it does
}
