package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Store keeps directories of images below a directory of its own, each under
// the digest of its image. What is in it is complete: content is put together
// beside it and moved in. Processes may share a store.
type Store struct {
	// Dir is the store's directory; it is made when it is missing.
	Dir string
	// Apart keeps what was had from one repository from those who ask for the same
	// digest in another: that a registry knows a digest does not show that it has
	// what it stands for.
	Apart bool
}

// Kept is a directory in a [Store]. It stays there until it is released.
type Kept struct {
	Extracted

	// Path of the directory that holds the content, and of the one around it,
	// which the user of the content may keep more in.
	Path, Entry string

	lock *os.File
}

// Release says that the content is not used any more.
func (k *Kept) Release() {
	// Nothing has been written through it.
	_ = k.lock.Close()
}

const (
	contentName = "content"
	scratchName = "layers"
	recordName  = "image.json"
	newPrefix   = ".new-"
	tagPrefix   = "tag-"
)

// Get returns a directory of the image with a digest, from the store or, when
// it is not there, from the registry. The error is an [*Error].
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
	kept, err := s.add(ctx, c, pin(ref, digest), what, entry)
	if e, ok := errors.AsType[*Error](err); ok {
		// The digest is ours; the user knows the image by its tag.
		e.Reference = reference
	}
	return kept, describe(reference, err)
}

// pin returns a reference to what has the digest.
func pin(ref name.Reference, digest string) string { return ref.Context().Digest(digest).Name() }

// Open returns a directory of the image with a digest if the store has it, whole.
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

// entry is the directory for an image. Its name depends on everything that the
// content does.
func (s Store) entry(c *Client, ref name.Reference, digest string, what Tree) string {
	parts := []string{c.options.Platform, what.Label, what.Default}
	if s.Apart {
		parts = append(parts, ref.Context().Name())
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return filepath.Join(s.Dir, strings.ReplaceAll(digest, ":", "-")+"-"+hex.EncodeToString(sum[:16]))
}

// open returns the content of an entry that is there and whole.
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

// check locks an entry and compares it with what is written down about it: a
// machine that loses power may leave files without their content.
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

// add brings an image from the registry.
func (s Store) add(ctx context.Context, c *Client, pinned string, what Tree, entry string) (*Kept, error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil { //nolint:gosec // others may read what anybody may pull
		return nil, fail(ReasonLocal, "making the directory for images: %w", err)
	}
	next, err := os.MkdirTemp(s.Dir, newPrefix)
	if err != nil {
		return nil, fail(ReasonLocal, "making a directory for the image: %w", err)
	}
	kept, err := fill(ctx, c, pinned, what, next)
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

// fill puts an image into a new directory.
func fill(ctx context.Context, c *Client, pinned string, what Tree, dir string) (*Kept, error) {
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
		if err := os.Mkdir(sub, 0o755); err != nil { //nolint:gosec // others may read what anybody may pull
			return kept, fail(ReasonLocal, "making a directory for the image: %w", err)
		}
	}
	found, err := c.Extract(ctx, pinned, what, content, scratch)
	if err != nil {
		return kept, err
	}
	kept.Extracted = *found
	return kept, writeRecord(dir, found)
}

// collisions is how often another process may put an entry there, and a third
// remove it, while it is looked at.
const collisions = 10

// settle moves a complete directory to its place. Where another process has been
// faster, what that has put there counts.
func (k *Kept) settle(from, entry string) (*Kept, error) {
	err := os.RemoveAll(filepath.Join(from, scratchName))
	if err == nil {
		// The temporary one was for its maker only.
		err = os.Chmod(from, 0o755) //nolint:gosec // others may read what anybody may pull
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
		// What is there is damaged.
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

// errInUse is why an entry cannot be removed now.
var errInUse = errors.New("the stored image is in use")

// remove removes an entry. It returns [errInUse] when somebody uses it.
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
		// Another process has removed it, and a third has just brought it again.
		return errInUse
	}
	// Whoever waits for the lock must not find half of it under its name.
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

// isAt tells whether an open directory is still the one with a name.
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

// removeAll removes what nobody will look for. What cannot be removed now is
// found by the next [Store.Prune].
func removeAll(dir string) { _ = os.RemoveAll(dir) }
