// Command fuzzcorpus generates the committed corpus of the fuzz targets from real catalogs and bundles:
//
//	go run ./test/fuzzcorpus
//
// It reads the catalogs of test/realcatalogs, which contain public community operators
// (Apache-2.0), and writes testdata/fuzz/TARGET/community-* below the package of each target. The
// files are also inputs of the ordinary tests. They have the forms of real catalogs but not their
// texts: sentences are masked, long texts are shortened, and icons and addresses of people are
// removed. The whole corpus stays below 300 KiB.
//
// Targets whose input does not occur in catalogs have seeds only in their code.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// prefix is the prefix of the names of the files that this command owns.
const prefix = "community-"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzcorpus:", err)
		os.Exit(1)
	}
}

// run replaces the files of the corpus in the module.
func run(ctx context.Context) error {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	files, err := generate(ctx)
	if err != nil {
		return err
	}
	old, err := committed(root)
	if err != nil {
		return err
	}
	for path := range old {
		if err := os.Remove(filepath.Join(root, path)); err != nil {
			return err
		}
	}
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files of the corpus by their paths in the module.
func generate(ctx context.Context) (map[string][]byte, error) {
	metadata, err := realcatalogs.Find(ctx, realcatalogs.Metadata)
	if err != nil {
		return nil, err
	}
	objects, err := realcatalogs.Find(ctx, realcatalogs.Objects)
	if err != nil {
		return nil, err
	}
	c, err := load(metadata, objects)
	if err != nil {
		return nil, err
	}
	seeds, err := c.seeds()
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	count := make(map[string]int)
	for _, s := range seeds {
		dir := filepath.Join(filepath.FromSlash(s.pkg), "testdata", "fuzz", s.target)
		path := filepath.Join(dir, fmt.Sprintf("%s%02d", prefix, count[dir]))
		count[dir]++
		if files[path], err = encode(s.values); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

// committed returns the files of the corpus in the module, by their paths.
func committed(root string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() != "." && (entry.Name()[0] == '.' || entry.Name() == "bin" || entry.Name() == "out") {
			return filepath.SkipDir
		}
		match, err := filepath.Match(filepath.Join("testdata", "fuzz", "*", prefix+"*"), lastFour(path))
		if err != nil || !match || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files[relative], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, errors.Join(errors.New("reading the committed corpus"), err)
	}
	return files, nil
}

// lastFour returns the last four elements of a path.
func lastFour(path string) string {
	dir, name := filepath.Split(path)
	dir, target := filepath.Split(filepath.Clean(dir))
	dir, fuzz := filepath.Split(filepath.Clean(dir))
	return filepath.Join(filepath.Base(filepath.Clean(dir)), fuzz, target, name)
}
