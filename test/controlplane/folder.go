package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/filelock"
)

const lockSuffix = ".lock"

// folder is the folder with the files of one control plane.
type folder struct {
	path string
	// lock is held while the folder is in use. It is nil for a folder that the caller chose.
	lock *filelock.Lock
}

// newFolder creates the folder at path, or a temporary one if path is empty.
func newFolder(path string) (folder, error) {
	if path != "" {
		return givenFolder(path)
	}

	runs, err := cacheFolder("run")
	if err != nil {
		return folder{}, err
	}

	err = sweep(runs)
	if err != nil {
		return folder{}, err
	}

	path = filepath.Join(runs, fmt.Sprintf("%d-%08x", os.Getpid(), rand.Uint32()))

	lock, err := filelock.Try(path + lockSuffix)
	if err != nil {
		return folder{}, err
	}

	err = os.Mkdir(path, 0o700)
	if err != nil {
		return folder{}, errors.Join(fmt.Errorf("make a folder for the control plane: %w", err), lock.Release())
	}

	return folder{path: path, lock: lock}, nil
}

func givenFolder(path string) (folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return folder{}, fmt.Errorf("resolve the folder of the control plane: %w", err)
	}

	err = os.MkdirAll(path, 0o700)
	if err != nil {
		return folder{}, fmt.Errorf("make a folder for the control plane: %w", err)
	}

	entries, err := os.ReadDir(path)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("it is not empty (%s): choose another or remove what it holds", entries[0].Name())
	}

	if err != nil {
		return folder{}, fmt.Errorf("use folder %s: %w", path, err)
	}

	return folder{path: path}, nil
}

// remove removes a temporary folder. It does not remove one that the caller chose.
func (f folder) remove() error {
	if f.lock == nil {
		return nil
	}

	return errors.Join(os.RemoveAll(f.path), os.Remove(f.path+lockSuffix), f.lock.Release())
}

// sweep removes the folders of control planes whose processes were killed.
func sweep(runs string) error {
	locks, err := filepath.Glob(filepath.Join(runs, "*"+lockSuffix))
	if err != nil {
		return fmt.Errorf("look for abandoned control planes: %w", err)
	}

	for _, name := range locks {
		lock, err := filelock.Try(name)
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}

		if err != nil {
			return fmt.Errorf("look for abandoned control planes: %w", err)
		}

		err = folder{path: strings.TrimSuffix(name, lockSuffix), lock: lock}.remove()
		// Another process may have removed the same folder.
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove an abandoned control plane: %w", err)
		}
	}

	return nil
}

// cacheFolder returns the path of this package's folder in the cache.
func cacheFolder(name string) (string, error) {
	root, err := buildcache.Root()
	if err != nil {
		return "", err
	}

	return filepath.Join(root, "controlplane", name), nil
}
