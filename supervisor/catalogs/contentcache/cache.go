// Package contentcache keeps the last known content of catalogs on disk, so that a restarted process has it while a
// catalog is unreachable.
//
// Each catalog has one file in the format of package index, which has checksums. The file names the CatalogSource that
// it belongs to, by namespace, name and UID. A damaged file, and a file of another CatalogSource, is never used.
package contentcache

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/privatedir"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

const (
	// DefaultSize is the default maximum size of a cache, in bytes.
	DefaultSize = 256 << 20
	// share is the part of a cache that one file may take.
	share = 4
	// extension is the end of the name of each file.
	extension = ".index"
	// encoding is part of the digest of a key. It changes with the encoding of content, so that another version of
	// the program does not read the file.
	encoding = "1"
	// youngest is the minimum age of a file that Retain removes. Another process may have written a younger file
	// for a CatalogSource that this process has not seen yet.
	youngest = time.Minute
)

var (
	// ErrUnusable is returned for a file that is damaged, too large, or of another CatalogSource.
	ErrUnusable = errors.New("the kept content cannot be used")
	// ErrTooLarge is returned for content that exceeds its share of the cache.
	ErrTooLarge = errors.New("the content is too large to be kept; raise --catalog-cache-size")
)

// key identifies a CatalogSource. One with the same name that was created again has another UID.
type key struct {
	types.NamespacedName

	uid types.UID
}

// validUID matches UIDs of API servers. A UID is the name of a file.
var validUID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{0,127}$`)

// valid reports whether the parts of the key can be names of files.
func (k key) valid() bool {
	return len(validation.IsDNS1123Label(k.Namespace)) == 0 && validUID.MatchString(string(k.uid))
}

// digest returns what a file records as its source.
func (k key) digest() [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join([]string{encoding, k.Namespace, k.Name, string(k.uid)}, "\x00")))
}

// Cache is a directory with the content of catalogs. Its methods are safe for concurrent use. Processes may share the
// directory.
type Cache struct {
	dir  string
	size int64
	mu   sync.Mutex
}

// Open returns the cache in a directory, which it creates. size is its maximum size in bytes.
func Open(dir string, size int64) (*Cache, error) {
	// A kubelet may give the group of a volume access to all directories, at each mount.
	const group = 0o070
	if info, err := os.Lstat(dir); err == nil && info.IsDir() && info.Mode().Perm()&group != 0 {
		_ = os.Chmod(dir, info.Mode().Perm()&^group) // Prepare reports a directory of another owner
	}
	if err := privatedir.Prepare(dir, "contents of catalogs", "--catalog-cache-dir"); err != nil {
		return nil, err //nolint:wrapcheck // says what was prepared
	}
	return &Cache{dir: dir, size: cmp.Or(size, DefaultSize)}, nil
}

// path returns the file of a catalog.
func (c *Cache) path(k key) string {
	return filepath.Join(c.dir, k.Namespace, string(k.uid)+extension)
}

// Write replaces the kept content of a catalog. A reader sees the previous content or the complete new one, also after
// the node has failed. If the cache exceeds its size, Write removes the largest file of the namespace that takes the
// most, repeatedly: the catalogs of one namespace do not displace those of others.
func (c *Cache) Write(ctx context.Context, name types.NamespacedName, uid types.UID, catalog *content.Catalog) error {
	k := key{NamespacedName: name, uid: uid}
	if !k.valid() {
		return fmt.Errorf("keeping the content of CatalogSource %s: its UID %q cannot be the name of a file", k, uid)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	path := c.path(k)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keeping the content of CatalogSource %s: %w", k, err)
	}
	written, err := index.Create(ctx, path, source{catalog}, index.Options{Digest: k.digest(), Validated: true, Durable: true})
	if err == nil && written.Info().FileBytes > c.size/share {
		err = errors.Join(ErrTooLarge, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("keeping the content of CatalogSource %s: %w", k, err)
	}
	return c.shrink()
}

// Read passes the kept content of a catalog to functions: first each channel entry, without manifests, and then each
// package. It returns when the content was written. The error is [fs.ErrNotExist] if there is no content. A file that
// cannot be used is removed.
func (c *Cache) Read(name types.NamespacedName, uid types.UID, bundle func(*api.Bundle) error, pkg func(*api.Package) error) (time.Time, error) {
	k := key{NamespacedName: name, uid: uid}
	if !k.valid() {
		return time.Time{}, fs.ErrNotExist
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	path := c.path(k)
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the kept content of CatalogSource %s: %w", k, err)
	}
	if err := c.decode(path, info, k, &decoder{bundle: bundle, pkg: pkg}); err != nil {
		return time.Time{}, errors.Join(fmt.Errorf("reading the kept content of CatalogSource %s: %w", k, err), os.Remove(path))
	}
	return info.ModTime(), nil
}

// decode decodes the file of a key.
func (c *Cache) decode(path string, info fs.FileInfo, k key, with *decoder) error {
	if !info.Mode().IsRegular() || info.Size() > c.size/share {
		return fmt.Errorf("%w: %s is not a regular file of at most %d bytes", ErrUnusable, path, c.size/share)
	}
	x, err := index.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return with.decodeOf(x, k)
}

// Open opens the file of a catalog for Receive of another process. The error is [fs.ErrNotExist] if there is no
// content.
func (c *Cache) Open(name types.NamespacedName, uid types.UID) (*os.File, error) {
	k := key{NamespacedName: name, uid: uid}
	if !k.valid() {
		return nil, fs.ErrNotExist
	}
	file, err := os.Open(c.path(k))
	if err != nil {
		return nil, fmt.Errorf("opening the kept content of CatalogSource %s: %w", k, err)
	}
	return file, nil
}

// Receive stores the file of a catalog from another process, unless there is one. The file is checked as in Read.
func (c *Cache) Receive(name types.NamespacedName, uid types.UID, from io.Reader) error {
	k := key{NamespacedName: name, uid: uid}
	if !k.valid() {
		return nil
	}
	if err := c.receive(k, from); err != nil {
		return fmt.Errorf("storing the content of CatalogSource %s from another process: %w", k, err)
	}
	return nil
}

func (c *Cache) receive(k key, from io.Reader) error {
	path := c.path(k)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating a directory: %w", err)
	}
	received, err := os.CreateTemp(filepath.Dir(path), ".received-*")
	if err != nil {
		return fmt.Errorf("creating a file: %w", err)
	}
	defer os.Remove(received.Name()) //nolint:errcheck // it has another name if all is well
	_, err = io.Copy(received, io.LimitReader(from, c.size/share+1))
	if err == nil {
		err = received.Sync()
	}
	if err := errors.Join(err, received.Close()); err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Lstat(received.Name())
	if err != nil {
		return fmt.Errorf("checking: %w", err)
	}
	check := &decoder{bundle: func(*api.Bundle) error { return nil }, pkg: func(*api.Package) error { return nil }}
	if err := c.decode(received.Name(), info, k, check); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil // this process has read the catalog
	}
	if err := os.Rename(received.Name(), path); err != nil {
		return fmt.Errorf("naming: %w", err)
	}
	return c.shrink()
}

// Remove removes the kept content of a catalog.
func (c *Cache) Remove(name types.NamespacedName, uid types.UID) error {
	k := key{NamespacedName: name, uid: uid}
	if !k.valid() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.Remove(c.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the kept content of CatalogSource %s: %w", k, err)
	}
	return nil
}

// Retain removes the files of all catalogs except the existing ones, unless they are new.
func (c *Cache) Retain(existing map[types.NamespacedName]types.UID, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	files, err := c.files()
	if err != nil {
		return err
	}
	retained := make(map[string]bool, len(existing))
	for name, uid := range existing {
		retained[c.path(key{NamespacedName: name, uid: uid})] = true
	}
	var problems []error
	for _, f := range files {
		if !retained[f.name] && now.Sub(f.written) >= youngest {
			problems = append(problems, remove(f))
		}
	}
	return errors.Join(problems...)
}

// file is a file of the cache.
type file struct {
	name, namespace string
	bytes           int64
	written         time.Time
}

// files returns all files, also those of unfinished writes.
func (c *Cache) files() ([]file, error) {
	var found []file
	err := filepath.WalkDir(c.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return ignoreNotExist(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreNotExist(err)
		}
		found = append(found, file{name: name, namespace: filepath.Dir(name), bytes: info.Size(), written: info.ModTime()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the kept contents of catalogs: %w", err)
	}
	return found, nil
}

// ignoreNotExist returns err, or nil for a file that another process has removed.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// shrink removes files until the cache does not exceed its size.
func (c *Cache) shrink() error {
	files, err := c.files()
	if err != nil {
		return err
	}
	for _, f := range excess(files, c.size) {
		if err := remove(f); err != nil {
			return err
		}
	}
	return nil
}

// excess returns the files to remove so that the others take at most size bytes: repeatedly the largest file of the
// namespace that takes the most.
func excess(files []file, size int64) []file {
	total, perNamespace := int64(0), map[string]int64{}
	for _, f := range files {
		total += f.bytes
		perNamespace[f.namespace] += f.bytes
	}
	left, removed := slices.Clone(files), []file(nil)
	for total > size {
		slices.SortFunc(left, func(a, b file) int {
			return cmp.Or(
				cmp.Compare(perNamespace[b.namespace], perNamespace[a.namespace]), cmp.Compare(a.namespace, b.namespace),
				cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name),
			)
		})
		f := left[0]
		left, removed = left[1:], append(removed, f)
		total -= f.bytes
		perNamespace[f.namespace] -= f.bytes
	}
	return removed
}

func remove(f file) error {
	if err := ignoreNotExist(os.Remove(f.name)); err != nil {
		return fmt.Errorf("removing kept content of a catalog: %w", err)
	}
	return nil
}

// hexDigest returns the digest as index.Info has it.
func (k key) hexDigest() string {
	digest := k.digest()
	return hex.EncodeToString(digest[:])
}
