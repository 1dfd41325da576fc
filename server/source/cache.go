package source

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
)

// IndexFile is the name of a directory's index in a cache.
const IndexFile = "chandlery" + indexExtension

const indexExtension = ".index"

// Cache stores the index of a directory for the next start. It only saves time: an index that is
// missing, damaged, of another version or of other content is rebuilt. If the cache cannot be
// written, the index is stored elsewhere.
type Cache struct {
	// Dir is the directory; empty for none.
	Dir string
	// Suspicious compares the whole content with the source of the index before using the index.
	// Otherwise names, sizes and modification times of all files must be equal, and [Dir.Verify]
	// compares the content later.
	Suspicious bool
	// Logger receives the logs; nil for none.
	Logger *slog.Logger

	// key is the key of the [Filter] of the index.
	key string
}

func (c Cache) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// file returns the name of the index. Each selection has its own.
func (c Cache) file() string {
	if c.key == "" {
		return filepath.Join(c.Dir, IndexFile)
	}
	return filepath.Join(c.Dir, strings.TrimSuffix(IndexFile, indexExtension)+"-"+c.key+indexExtension)
}

// outside returns the cache, or no cache if its directory lies in the catalog and would be part of it.
func (c Cache) outside(ctx context.Context, catalog string) Cache {
	if c.Dir == "" {
		return c
	}
	below, err := filepath.Rel(resolved(catalog), resolved(c.Dir))
	if err != nil || !filepath.IsLocal(below) {
		return c
	}
	c.logger().WarnContext(ctx, "The cache directory lies in the catalog, serving without", "directory", c.Dir)
	c.Dir = ""
	return c
}

// resolved returns a path with its symbolic links resolved, as far as the path exists.
func resolved(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if target, err := filepath.EvalSymlinks(absolute); err == nil {
		return target
	}
	return filepath.Join(resolved(filepath.Dir(absolute)), filepath.Base(absolute))
}

// load returns the index in the cache if it matches the files, and nil otherwise.
func (c Cache) load(ctx context.Context, root fs.FS, files []index.SourceFile) *index.Index {
	if c.Dir == "" {
		return nil
	}
	logger := c.logger().With("file", c.file())
	x, err := index.Open(c.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		logger.DebugContext(ctx, "There is no cached index yet")
		return nil
	case err != nil:
		logger.WarnContext(ctx, "The cached index cannot be used, rebuilding it", "error", err)
		return nil
	}
	then := x.Sources()
	if len(then) == 0 {
		logger.WarnContext(ctx, "The cached index does not state its source, rebuilding it")
		return nil
	}
	if slices.Equal(withoutSums(then), files) && !c.Suspicious {
		return x
	}
	if !slices.EqualFunc(then, files, sameSize) {
		logger.InfoContext(ctx, "The cached index is of other content, rebuilding it")
		return nil
	}
	now, err := sumFiles(ctx, root, files)
	if err != nil || !slices.EqualFunc(then, now, sameContent) {
		logger.InfoContext(ctx, "The cached index is of other content, rebuilding it", "error", err)
		return nil
	}
	if err := x.Check(); c.Suspicious && err != nil {
		logger.WarnContext(ctx, "The cached index cannot be used, rebuilding it", "error", err)
		return nil
	}
	return x
}

// build builds the index of the directory: in the cache if there is one, else in an unnamed file, else in memory.
func (d Dir) build(ctx context.Context, root fs.FS, files []index.SourceFile) (*index.Index, error) {
	reader, err := fbc.Open(ctx, root, d.Options)
	if err != nil {
		return nil, fmt.Errorf("reading catalog: %w", err)
	}
	defer reader.Close() //nolint:errcheck // nothing was written
	selected, err := d.Filter.apply(ctx, reader)
	if err != nil {
		return nil, err
	}
	// If the file in the cache cannot be written, try the next place.
	if d.Cache.Dir != "" && len(files) > 0 {
		x, err := d.fill(ctx, selected, root, files)
		if err == nil || isCatalogError(ctx, err) {
			return x, err
		}
		d.Cache.logger().WarnContext(ctx, "Cannot keep the index in the cache directory, serving without", "error", err)
	}
	o := index.Options{Progress: d.Progress}
	x, err := index.CreateTemp(ctx, "", selected, o)
	if err == nil || isCatalogError(ctx, err) {
		return x, wrapBuildError(err)
	}
	d.Cache.logger().InfoContext(ctx, "There is no room for temporary files, keeping the index in memory", "error", err)
	x, err = index.CreateInMemory(ctx, selected, o)
	return x, wrapBuildError(err)
}

// isCatalogError reports whether an error concerns the catalog and not the place of its index.
func isCatalogError(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.As(err, new(bundles.Problems))
}

// wrapBuildError wraps an error with what was being done; nil stays nil.
func wrapBuildError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("making index: %w", err)
}

// fill builds the index in the cache and opens it there.
func (d Dir) fill(ctx context.Context, from index.Source, root fs.FS, files []index.SourceFile) (*index.Index, error) {
	if err := os.MkdirAll(d.Cache.Dir, 0o755); err != nil { //nolint:gosec // a container may run as any user
		return nil, fmt.Errorf("making the cache directory: %w", err)
	}
	files, err := sumFiles(ctx, root, files)
	if err != nil {
		return nil, err
	}
	o := index.Options{Sources: files, Digest: d.Filter.digest(digestOf(files)), Progress: d.Progress}
	x, err := index.Create(ctx, d.Cache.file(), from, o)
	return x, wrapBuildError(err)
}

// sumFiles returns the files with checksums of their content. The checksums detect accidental
// changes only. An attacker who can write a colliding catalog could also write the index.
func sumFiles(ctx context.Context, root fs.FS, files []index.SourceFile) ([]index.SourceFile, error) {
	out := slices.Clone(files)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sumConcurrency)
	for i := range out {
		if out[i].Size == noContent {
			continue
		}
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("reading catalog: %w", err)
			}
			sum, err := sumFile(root, out[i].Name)
			out[i].Sum = sum
			if errors.Is(err, fs.ErrPermission) {
				// The loader reports the file, or it is not part of the catalog.
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

const (
	sumConcurrency = 4
	sumBuffer      = 128 << 10
)

func sumFile(root fs.FS, name string) (uint64, error) {
	file, err := root.Open(name)
	if err != nil {
		return 0, fmt.Errorf("reading catalog: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	digest := xxhash.New()
	if _, err := io.CopyBuffer(digest, struct{ io.Reader }{file}, make([]byte, sumBuffer)); err != nil {
		return 0, fmt.Errorf("reading catalog: %w", err)
	}
	return digest.Sum64(), nil
}

// digestOf returns the digest of names and contents.
func digestOf(files []index.SourceFile) [32]byte {
	digest := sha256.New()
	for i := range files {
		text := binary.AppendUvarint(nil, uint64(len(files[i].Name)))
		text = append(text, files[i].Name...)
		text = binary.AppendVarint(text, files[i].Size)
		digest.Write(binary.LittleEndian.AppendUint64(text, files[i].Sum))
	}
	return [32]byte(digest.Sum(nil))
}

func withoutSums(files []index.SourceFile) []index.SourceFile {
	out := slices.Clone(files)
	for i := range out {
		out[i].Sum = 0
	}
	return out
}

func sameSize(a, b index.SourceFile) bool { return a.Name == b.Name && a.Size == b.Size }

func sameContent(a, b index.SourceFile) bool { return sameSize(a, b) && a.Sum == b.Sum }
