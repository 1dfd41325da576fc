package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
)

// File is an existing index file. To replace it, rename a new file to its name.
type File struct {
	// Path of the file.
	Path string
	// AllowEmpty accepts an index without any package.
	AllowEmpty bool
}

// Load opens the index. The error holds [bundles.Problems] when it cannot be
// served.
func (f File) Load(context.Context) (*index.Index, error) {
	x, err := index.Open(f.Path)
	switch {
	case errors.Is(err, index.ErrNotIndex):
		return nil, bundles.Problems{{
			File: f.Path, Message: cause(err), Remedy: "rebuild it with 'registry build'",
		}}
	case errors.Is(err, fs.ErrNotExist):
		return nil, bundles.Problems{{
			File: f.Path, Message: "there is no such file", Remedy: "check the path and what is mounted there", Unreadable: true,
		}}
	case err != nil:
		return nil, bundles.Problems{{
			File: f.Path, Message: cause(err),
			Remedy: "give the user that serves the catalog permission to read it", Unreadable: true,
		}}
	}
	if x.Stats().Packages == 0 && !f.AllowEmpty {
		return nil, bundles.Problems{{
			File: f.Path, Message: "the index holds no package", Remedy: "make it of a catalog with packages, or allow it with --allow-empty",
		}}
	}
	return x, nil
}

// Damaged returns an error that holds [bundles.Problems] for an index that turns out to be damaged
// while it is served.
func (f File) Damaged(err error) error {
	return bundles.Problems{{
		File: f.Path, Message: err.Error(), Remedy: "rebuild the file with 'registry build'",
	}}
}

// cause returns the text of an error without the context that was added to it.
func cause(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return err.Error()
}

// Fingerprint returns a text that changes when the file is replaced.
func (f File) Fingerprint() (string, error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return "", fmt.Errorf("reading the index: %w", err)
	}
	digest := sha256.New()
	record(digest, f.Path, info)
	return hex.EncodeToString(digest.Sum(nil)), nil
}
