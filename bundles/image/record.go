package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// record describes stored content.
type record struct {
	Extracted

	// Sum is the checksum of the content; empty if the content is too large.
	Sum string `json:"sum,omitempty"`
}

// maxSummed is the size up to which content is read completely each time it is opened. For larger
// content, only the sizes are compared.
const maxSummed = 64 << 20

func writeRecord(dir string, found *Extracted) error {
	sum, err := checksum(filepath.Join(dir, contentName), found.Bytes)
	if err != nil {
		return fail(ReasonLocal, "reading the content of the image: %w", err)
	}
	text, err := json.Marshal(record{Extracted: *found, Sum: sum})
	if err != nil {
		return fail(ReasonLocal, "encoding what is known of the image: %w", err)
	}
	//nolint:gosec // other users may read pulled images
	if err := os.WriteFile(filepath.Join(dir, recordName), text, 0o644); err != nil {
		return fail(ReasonLocal, "writing what is known of the image: %w", err)
	}
	return nil
}

func readRecord(entry string) (*record, error) {
	text, err := os.ReadFile(filepath.Join(entry, recordName))
	if err != nil {
		return nil, fmt.Errorf("reading stored image: %w", err)
	}
	var found record
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamagedEntry, err)
	}
	return &found, nil
}

// used records that an entry is in use. If that fails, the creation time of the entry counts.
func used(entry string) {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(entry, recordName), now, now)
}

// lastUsed returns the time of the last use of an entry.
func lastUsed(entry string) time.Time {
	info, err := os.Stat(filepath.Join(entry, recordName))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// checksum covers the names and contents of the files in a directory, and the targets of links. It
// is empty for content larger than maxSummed.
func checksum(dir string, size int64) (string, error) {
	if size > maxSummed {
		return "", nil
	}
	sum := sha256.New()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err //nolint:wrapcheck // the caller says what it is for
	}
	defer root.Close() //nolint:errcheck // nothing was written
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %s\n", name, d.Type())
		switch {
		case d.Type().IsRegular():
			return sumFile(sum, root, name)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := root.Readlink(name)
			fmt.Fprintf(sum, "%q\n", target)
			return err //nolint:wrapcheck // the caller says what it is for
		default:
			return nil
		}
	})
	return hex.EncodeToString(sum.Sum(nil)), err //nolint:wrapcheck // the caller says what it is for
}

func sumFile(sum hash.Hash, root *os.Root, name string) error {
	file, err := root.Open(name)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is for
	}
	defer file.Close() //nolint:errcheck // nothing was written
	n, err := io.Copy(sum, file)
	fmt.Fprintf(sum, "\n%d\n", n)
	return err //nolint:wrapcheck // the caller says what it is for
}
