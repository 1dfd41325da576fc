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

// Prune removes what nobody uses from the store, except one entry: content of
// other images, and what processes that were killed have left.
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

// unlessInUse leaves out that somebody uses what was to be removed: it stays for him.
func unlessInUse(err error) error {
	if errors.Is(err, errInUse) {
		return nil
	}
	return err
}

// youth is how long something new is left to its maker, who may not have locked it
// yet.
const youth = time.Minute

func isYoung(one fs.DirEntry) bool {
	return strings.HasPrefix(one.Name(), newPrefix) && !isOlder(one, youth)
}

// isOlder tells whether something has not been written for some time.
func isOlder(one fs.DirEntry, age time.Duration) bool {
	info, err := one.Info()
	return err == nil && time.Since(info.ModTime()) >= age
}

// Usage is how much a store holds.
type Usage struct {
	Images int
	Bytes  int64
}

// Bound removes content from the store, that used least recently first, until what
// is left has no more than a number of bytes, and what processes that were killed
// have left. What is in use or being put together stays. It returns what is left.
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

// reduce removes what was used least recently until no more than size is left.
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

// maxTagAge is how long a tag is remembered that nobody looks at.
const maxTagAge = 7 * 24 * time.Hour

// forget removes what is remembered of tags that stand for what is not there any
// more, or that nobody has looked at for long.
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

// isForgotten tells whether a file is what is remembered of a tag in vain, or was
// meant to be and never finished.
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

// isEntry tells whether a name is that of an entry.
func isEntry(name string) bool {
	return strings.HasPrefix(name, "sha256-") || strings.HasPrefix(name, "sha512-")
}
