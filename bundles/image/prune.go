package image

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Prune removes everything that is not in use from the store, except one entry: content of other
// images, and leftovers of killed processes.
func (s Store) Prune(keep *Kept) error {
	all, err := os.ReadDir(s.Dir)
	if err != nil {
		return fmt.Errorf("looking for old images: %w", err)
	}
	var errs []error
	for _, one := range all {
		ours := strings.HasPrefix(one.Name(), newPrefix) || isEntry(one.Name())
		if !one.IsDir() || !ours || isYoung(one) || one.Name() == filepath.Base(keep.Entry) {
			continue
		}
		errs = append(errs, unlessInUse(remove(filepath.Join(s.Dir, one.Name()))))
	}
	return errors.Join(errs...)
}

// unlessInUse ignores the error of an entry in use.
func unlessInUse(err error) error {
	if errors.Is(err, errInUse) {
		return nil
	}
	return err
}

// youth is the age up to which new directories are kept, because their creator may not have locked them yet.
const youth = time.Minute

func isYoung(one fs.DirEntry) bool {
	return strings.HasPrefix(one.Name(), newPrefix) && !isOlder(one, youth)
}

// isOlder reports whether a file was last written at least age ago.
func isOlder(one fs.DirEntry, age time.Duration) bool {
	info, err := one.Info()
	return err == nil && time.Since(info.ModTime()) >= age
}

// Usage is the size of a store.
type Usage struct {
	Images int
	Bytes  int64
}

// Bound removes the least recently used content from the store until at most size bytes remain. It
// also removes leftovers of killed processes. It keeps what is in use or under construction, and
// returns what remains.
func (s Store) Bound(size int64) (Usage, error) {
	all, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Usage{}, nil
	}
	if err != nil {
		return Usage{}, fmt.Errorf("looking for old images: %w", err)
	}
	var (
		left  Usage
		found []candidate
		errs  []error
	)
	for _, one := range all {
		entry := filepath.Join(s.Dir, one.Name())
		switch {
		case one.IsDir() && strings.HasPrefix(one.Name(), newPrefix):
			if !isYoung(one) {
				errs = append(errs, unlessInUse(remove(entry)))
			}
		case one.IsDir() && isEntry(one.Name()):
			// Another process may be removing it.
			if _, bytes, err := count(entry); err == nil {
				left.Images++
				left.Bytes += bytes
				found = append(found, candidate{entry, bytes, lastUsed(entry)})
			}
		}
	}
	errs = append(errs, left.reduce(found, size), s.forget())
	return left, errors.Join(errs...)
}

// reduce removes the least recently used entries until at most size bytes remain.
func (u *Usage) reduce(found []candidate, size int64) error {
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(a.used.Compare(b.used), strings.Compare(a.entry, b.entry))
	})
	var errs []error
	for _, one := range found {
		if u.Bytes <= size {
			break
		}
		switch err := remove(one.entry); {
		case errors.Is(err, errInUse):
		case err != nil:
			errs = append(errs, err)
		default:
			u.Images--
			u.Bytes -= one.bytes
		}
	}
	return errors.Join(errs...)
}

// candidate is an entry that may be removed.
type candidate struct {
	entry string
	bytes int64
	used  time.Time
}

// maxTagAge is how long an unused tag is remembered.
const maxTagAge = 7 * 24 * time.Hour

// forget removes remembered tags whose image is not stored or that have not been used for long.
func (s Store) forget() error {
	all, err := os.ReadDir(s.Dir)
	if err != nil {
		return fmt.Errorf("looking for old tags: %w", err)
	}
	digests := map[string]bool{}
	for _, one := range all {
		if isEntry(one.Name()) {
			digests[one.Name()[:strings.LastIndexByte(one.Name(), '-')]] = true
		}
	}
	var errs []error
	for _, one := range all {
		if !s.isForgotten(one, digests) {
			continue
		}
		if err := os.Remove(filepath.Join(s.Dir, one.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("removing an old tag: %w", err))
		}
	}
	return errors.Join(errs...)
}

// isForgotten reports whether a file is an obsolete remembered tag or an old unfinished one.
func (s Store) isForgotten(one fs.DirEntry, digests map[string]bool) bool {
	if strings.HasPrefix(one.Name(), newPrefix) {
		return one.Type().IsRegular() && isOlder(one, youth)
	}
	if !strings.HasPrefix(one.Name(), tagPrefix) {
		return false
	}
	text, err := os.ReadFile(filepath.Join(s.Dir, one.Name()))
	digest, _, _ := strings.Cut(string(text), " ")
	return err == nil && (!digests[strings.ReplaceAll(digest, ":", "-")] || isOlder(one, maxTagAge))
}

// isEntry reports whether a name is the name of an entry.
func isEntry(name string) bool {
	return strings.HasPrefix(name, "sha256-") || strings.HasPrefix(name, "sha512-")
}
