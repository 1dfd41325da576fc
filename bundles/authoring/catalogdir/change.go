package catalogdir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Change is a change of a catalog directory. Only the process with the directory's lock has one.
type Change struct {
	dir  string
	lock *os.File
	// texts are the new contents of files, by their names below the directory.
	texts map[string][]byte
}

// Begin takes the lock of a directory. If an earlier change was interrupted, Begin restores the
// previous files. Call Close afterwards.
func Begin(ctx context.Context, dir string) (*Change, error) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the catalog: %w", err)
	}
	held, err := lock(ctx, resolved)
	if err != nil {
		return nil, err
	}
	c := &Change{dir: resolved, lock: held, texts: map[string][]byte{}}
	if err := c.restore(); err != nil {
		return nil, errors.Join(fmt.Errorf("restoring the catalog after an interrupted change: %w", err), c.Close())
	}
	return c, nil
}

// Close releases the lock. It discards files that were put and not committed.
func (c *Change) Close() error {
	if err := c.lock.Close(); err != nil {
		return fmt.Errorf("releasing the catalog: %w", err)
	}
	return nil
}

// Read returns the content of a file, as it would be after the change.
func (c *Change) Read(name string) ([]byte, error) {
	if text, ok := c.texts[name]; ok {
		return slices.Clone(text), nil
	}
	text, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	return text, nil
}

// errOutside means that a name points out of the directory.
var errOutside = errors.New("is not the name of a file below the catalog")

// Put sets the content of a file. It creates a missing file and its folders.
func (c *Change) Put(name string, text []byte) error {
	if !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("%q %w", name, errOutside)
	}
	c.texts[name] = text
	return nil
}

// Names returns the names of the files that are changed, in byte order.
func (c *Change) Names() []string { return slices.Sorted(maps.Keys(c.texts)) }

// step is one file of a change.
type step struct {
	// Target is the path of the file.
	Target string `json:"target"`
	// Existed is set if there was such a file. Its old content is kept.
	Existed bool `json:"existed"`
	// Digest is the SHA-256 of the new content, in hexadecimal digits.
	Digest string `json:"digest"`
	// Folder is the topmost folder that was created for the file; empty for none.
	Folder string `json:"folder,omitempty"`
}

// The files of a prepared change. The first excludes all of them from the catalog.
const (
	ignoreFile = ".indexignore"
	planFile   = "plan.json"
	newFile    = "new-%d"
	oldFile    = "old-%d"
)

// staging returns the folder in which changes are prepared. It is on the file system of the
// catalog, because files are renamed into place.
func (c *Change) staging() string { return filepath.Join(c.dir, ".catalog-change") }

// stage creates the folder in which a change is prepared.
func (c *Change) stage() error {
	if err := os.MkdirAll(c.staging(), 0o755); err != nil { //nolint:gosec // as the catalog itself
		return err
	}
	return writeFile(filepath.Join(c.staging(), ignoreFile), []byte("*\n"), 0o644)
}

// unstage removes the folder. It removes the file that excludes the others from the catalog last.
func (c *Change) unstage() error {
	entries, err := os.ReadDir(c.staging())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == ignoreFile {
			continue
		}
		if err := os.Remove(filepath.Join(c.staging(), entry.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(c.staging())
}

// Commit changes all files that were put. When it returns an error no file has changed.
func (c *Change) Commit() error {
	if len(c.texts) == 0 {
		return nil
	}
	if err := c.stage(); err != nil {
		return fmt.Errorf("preparing the change: %w", err)
	}
	if err := c.apply(); err != nil {
		return errors.Join(fmt.Errorf("changing the catalog: %w", err), c.restore())
	}
	// From here on the change is permanent.
	if err := os.Remove(filepath.Join(c.staging(), planFile)); err != nil {
		return errors.Join(fmt.Errorf("changing the catalog: %w", err), c.restore())
	}
	c.texts = map[string][]byte{}
	if err := c.unstage(); err != nil {
		return fmt.Errorf("removing what the change leaves in the catalog: %w", err)
	}
	return nil
}

// apply prepares all files, records the planned steps, and then changes the files.
func (c *Change) apply() error {
	names := c.Names()
	steps := make([]step, len(names))
	for i, name := range names {
		var err error
		if steps[i], err = c.prepare(i, name); err != nil {
			return err
		}
	}
	if err := c.writePlan(steps); err != nil {
		return err
	}
	for i, s := range steps {
		if err := os.MkdirAll(filepath.Dir(s.Target), 0o755); err != nil { //nolint:gosec // as the catalog itself
			return err
		}
		if err := os.Rename(c.staged(newFile, i), s.Target); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) staged(form string, i int) string {
	return filepath.Join(c.staging(), fmt.Sprintf(form, i))
}

// prepare writes the new content of a file to the staging folder and copies the old one.
func (c *Change) prepare(i int, name string) (step, error) {
	target := filepath.Join(c.dir, filepath.FromSlash(name))
	mode := fs.FileMode(0o644)
	s := step{Target: target, Digest: digest(c.texts[name])}
	resolved, err := filepath.EvalSymlinks(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Folder = missingFolder(target)
	case err != nil:
		return step{}, err
	default:
		s.Target, s.Existed = resolved, true
		if mode, err = keep(resolved, c.staged(oldFile, i)); err != nil {
			return step{}, err
		}
	}
	return s, writeFile(c.staged(newFile, i), c.texts[name], mode)
}

// digest returns the SHA-256 of a content, in hexadecimal digits.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// keep copies a file with its permissions, and returns these.
func keep(name, to string) (fs.FileMode, error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	old, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	mode := info.Mode().Perm()
	return mode, writeFile(to, old, mode)
}

// missingFolder returns the topmost missing folder on the path of a file.
func missingFolder(target string) string {
	missing := ""
	for dir := filepath.Dir(target); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			return missing
		}
		missing = dir
	}
	return missing
}

func writeFile(name string, text []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
}

func (c *Change) writePlan(steps []step) error {
	text, err := json.Marshal(steps)
	if err != nil {
		return fmt.Errorf("noting the change: %w", err)
	}
	unfinished := filepath.Join(c.staging(), planFile+".new")
	if err := writeFile(unfinished, text, 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, filepath.Join(c.staging(), planFile))
}

// restore undoes an interrupted change. Without a plan, no file has been changed.
func (c *Change) restore() error {
	text, err := os.ReadFile(filepath.Join(c.staging(), planFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c.unstage()
	}
	if err != nil {
		return err
	}
	var steps []step
	if err := json.Unmarshal(text, &steps); err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Join(c.staging(), planFile), err)
	}
	for i, s := range steps {
		if err := c.unedited(i, s); err != nil {
			return err
		}
	}
	for i, s := range steps {
		if err := c.undo(i, s); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(c.staging(), planFile)); err != nil {
		return err
	}
	return c.unstage()
}

// unedited returns an error if a file was edited after the change of it was interrupted.
func (c *Change) unedited(i int, s step) error {
	now, err := os.ReadFile(s.Target)
	if errors.Is(err, fs.ErrNotExist) && !s.Existed {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && digest(now) == s.Digest {
		return nil
	}
	if s.Existed {
		old, oldErr := os.ReadFile(c.staged(oldFile, i))
		if oldErr != nil {
			return oldErr
		}
		if err == nil && bytes.Equal(now, old) {
			return nil
		}
	}
	return fmt.Errorf("%s has been edited since; delete the folder %s to keep all files as they are now", s.Target, c.staging())
}

func (c *Change) undo(i int, s step) error {
	if s.Existed {
		old, err := os.ReadFile(c.staged(oldFile, i))
		if err != nil {
			return err
		}
		again := c.staged(newFile, i) + ".old"
		info, err := os.Stat(c.staged(oldFile, i))
		if err != nil {
			return err
		}
		return errors.Join(writeFile(again, old, info.Mode().Perm()), os.Rename(again, s.Target))
	}
	if err := os.Remove(s.Target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(s.Target); s.Folder != "" && len(dir) >= len(s.Folder); dir = filepath.Dir(dir) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
