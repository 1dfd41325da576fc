package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Store stores directories of images below a directory of its own, each under the digest of its
// image. Stored content is complete: it is assembled in another directory and renamed. Processes
// may share a store.
type Store struct {
	// Dir is the store's directory. It is created if it is missing.
	Dir string
	// Apart separates the content of different repositories. A user who may pull one repository
	// must not get content of another by its digest.
	Apart bool
	// Realm separates content whose users have the same rights; empty for the common content.
	Realm string
}

// Kept is a directory in a [Store]. It exists until it is released.
type Kept struct {
	Extracted

	// Path is the directory with the content. Entry is the directory around it, in which users of
	// the content may store more.
	Path, Entry string

	lock *os.File
}

// Release marks the content as no longer used.
func (k *Kept) Release() {
	// The directory was opened only for its lock.
	_ = k.lock.Close()
}

const (
	contentName = "content"
	scratchName = "layers"
	recordName  = "image.json"
	newPrefix   = ".new-"
	tagPrefix   = "tag-"
)

// Get returns a directory of the image with a digest. It pulls the image if the store lacks it. The
// error is an [*Error].
func (s Store) Get(ctx context.Context, c *Client, reference, digest string, what Tree) (*Kept, error) {
	ref, err := c.parse(reference)
	if err != nil {
		return nil, describe(reference, err)
	}
	if _, err := v1.NewHash(digest); err != nil {
		return nil, describe(reference, fail(ReasonReference, "%q is no digest: %w", digest, err))
	}
	entry := s.entry(c, ref, digest, what)
	if kept, err := open(entry); err == nil {
		return kept, nil
	}
	kept, err := s.add(entry, func(content, scratch string) (*Extracted, error) {
		return c.Extract(ctx, pin(ref, digest), what, content, scratch)
	})
	if e, ok := errors.AsType[*Error](err); ok {
		// Users refer to the image by its tag, not by the digest.
		e.Reference = reference
	}
	return kept, describe(reference, err)
}

// Archive is a directory of the image with a digest, as [Tree.Archive] has written it.
type Archive struct {
	Digest  string
	Tree    Tree
	Content io.Reader
}

// Import stores a directory of an image from an archive. The caller knows that the archive is of this image. The limits of
// the client apply. The error is an [*Error].
func (s Store) Import(ctx context.Context, c *Client, reference string, a Archive) (*Kept, error) {
	ref, err := c.parse(reference)
	if err != nil {
		return nil, describe(reference, err)
	}
	kept, err := s.add(s.entry(c, ref, a.Digest, a.Tree), func(content, scratch string) (*Extracted, error) {
		found, err := c.unarchive(ctx, a.Tree, a.Content, content, scratch)
		if err == nil {
			found.Digest = a.Digest
		}
		return found, err
	})
	return kept, describe(reference, err)
}

// pin returns a reference with the digest.
func pin(ref name.Reference, digest string) string { return ref.Context().Digest(digest).Name() }

// Open returns a directory of the image with a digest if the store has it and it is intact.
func (s Store) Open(c *Client, reference, digest string, what Tree) (*Kept, error) {
	ref, err := c.parse(reference)
	if err != nil {
		return nil, describe(reference, err)
	}
	kept, err := open(s.entry(c, ref, digest, what))
	if err != nil {
		return nil, describe(reference, &failure{ReasonLocal, err})
	}
	return kept, nil
}

// entry returns the directory for an image. Its name depends on everything that determines the content.
func (s Store) entry(c *Client, ref name.Reference, digest string, what Tree) string {
	parts := []string{c.options.Platform, what.Label, what.Default}
	if s.Apart {
		parts = append(parts, ref.Context().Name())
	}
	if s.Realm != "" {
		parts = append(parts, s.Realm)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return filepath.Join(s.Dir, strings.ReplaceAll(digest, ":", "-")+"-"+hex.EncodeToString(sum[:16]))
}

// open returns the content of an entry that exists and is intact.
func open(entry string) (*Kept, error) {
	lock, err := os.Open(entry)
	if err != nil {
		return nil, fmt.Errorf("opening stored image: %w", err)
	}
	kept := &Kept{Path: filepath.Join(entry, contentName), Entry: entry, lock: lock}
	if err := kept.check(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	used(entry)
	return kept, nil
}

var (
	errDamagedEntry = errors.New("the stored image is damaged")
	errRemovedEntry = errors.New("the stored image is being removed")
)

// check locks an entry and compares it with its record. A machine that loses power may leave files
// without their content.
func (k *Kept) check() error {
	if err := lockShared(k.lock); err != nil {
		return fmt.Errorf("locking stored image: %w", err)
	}
	if same, err := isAt(k.lock, k.Entry); err != nil || !same {
		return errRemovedEntry
	}
	known, err := readRecord(k.Entry)
	if err != nil {
		return err
	}
	k.Extracted = known.Extracted
	files, size, err := count(k.Path)
	if err != nil {
		return fmt.Errorf("looking at stored image: %w", err)
	}
	if files != k.Files || size != k.Bytes {
		return errDamagedEntry
	}
	sum, err := checksum(k.Path, size)
	if err != nil {
		return fmt.Errorf("reading stored image: %w", err)
	}
	if sum != known.Sum {
		return errDamagedEntry
	}
	return nil
}

// count returns the number and the size of the files in a directory.
func count(dir string) (files int, size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err //nolint:wrapcheck // it is wrapped once, below
		}
		files++
		size += info.Size()
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("walking: %w", err)
	}
	return files, size, nil
}

// extractor extracts the directory of an image to content, and stores temporary files in scratch.
type extractor func(content, scratch string) (*Extracted, error)

// add extracts an image to a new entry.
func (s Store) add(entry string, extract extractor) (*Kept, error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil { //nolint:gosec // other users may read pulled images
		return nil, fail(ReasonLocal, "making the directory for images: %w", err)
	}
	next, err := os.MkdirTemp(s.Dir, newPrefix)
	if err != nil {
		return nil, fail(ReasonLocal, "making a directory for the image: %w", err)
	}
	kept, err := fill(next, extract)
	if err == nil {
		kept, err = kept.settle(next, entry)
	}
	if err != nil {
		if kept != nil {
			kept.Release()
		}
		removeAll(next)
		return nil, err
	}
	return kept, nil
}

// fill extracts an image to a new directory.
func fill(dir string, extract extractor) (*Kept, error) {
	lock, err := os.Open(dir)
	if err != nil {
		return nil, fail(ReasonLocal, "opening the directory for the image: %w", err)
	}
	kept := &Kept{lock: lock}
	if err := lockShared(lock); err != nil {
		return kept, fail(ReasonLocal, "locking the directory for the image: %w", err)
	}
	content, scratch := filepath.Join(dir, contentName), filepath.Join(dir, scratchName)
	for _, sub := range []string{content, scratch} {
		if err := os.Mkdir(sub, 0o755); err != nil { //nolint:gosec // other users may read pulled images
			return kept, fail(ReasonLocal, "making a directory for the image: %w", err)
		}
	}
	found, err := extract(content, scratch)
	if err != nil {
		return kept, err
	}
	kept.Extracted = *found
	return kept, writeRecord(dir, found)
}

// collisions bounds the retries when other processes add and remove the entry in between.
const collisions = 10

// settle renames a complete directory to its final name. If another process has stored the entry
// first, settle returns that entry.
func (k *Kept) settle(from, entry string) (*Kept, error) {
	err := os.RemoveAll(filepath.Join(from, scratchName))
	if err == nil {
		// The temporary directory was only accessible to its creator.
		err = os.Chmod(from, 0o755) //nolint:gosec // other users may read pulled images
	}
	if err != nil {
		return k, fail(ReasonLocal, "storing the image: %w", err)
	}
	for range collisions {
		if found, openErr := open(entry); openErr == nil {
			k.Release()
			removeAll(from)
			return found, nil
		}
		// The existing entry is damaged.
		if err = remove(entry); err != nil {
			continue
		}
		if err = os.Rename(from, entry); err == nil {
			k.Path, k.Entry = filepath.Join(entry, contentName), entry
			return k, nil
		}
	}
	return k, fail(ReasonLocal, "storing the image: %w", err)
}

// errInUse means that an entry is in use and cannot be removed.
var errInUse = errors.New("the stored image is in use")

// remove removes an entry. It returns [errInUse] if the entry is in use.
func remove(entry string) error {
	lock, err := os.Open(entry)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing stored image: %w", err)
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	if lockExclusive(lock) != nil {
		return errInUse
	}
	switch same, err := isAt(lock, entry); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("removing stored image: %w", err)
	case !same:
		// Another process has removed the entry, and a third has stored it again.
		return errInUse
	}
	// Rename the entry first. Processes that wait for the lock must not find a partial entry.
	gone, err := os.MkdirTemp(filepath.Dir(entry), newPrefix)
	if err != nil {
		return fmt.Errorf("removing stored image: %w", err)
	}
	if err := os.Rename(entry, filepath.Join(gone, contentName)); err != nil {
		removeAll(gone)
		return fmt.Errorf("removing stored image: %w", err)
	}
	removeAll(gone)
	return nil
}

// isAt reports whether an open directory still has a name.
func isAt(open *os.File, entry string) (bool, error) {
	opened, err := open.Stat()
	if err != nil {
		return false, err //nolint:wrapcheck // callers say what for
	}
	now, err := os.Stat(entry)
	if err != nil {
		return false, err //nolint:wrapcheck // callers say what for
	}
	return os.SameFile(opened, now), nil
}

// removeAll removes a directory that no process uses. The next [Store.Prune] removes what remains.
func removeAll(dir string) { _ = os.RemoveAll(dir) }
