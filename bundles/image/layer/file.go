package layer

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Files returns an entry for each file and folder of a tree, like [Tree]. The contents are read
// when a layer is built.
func Files(tree fs.FS, below string) ([]Entry, error) {
	var entries []Entry
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := path.Join(below, name)
		if d.IsDir() {
			entries = append(entries, Folder(target))
			return nil
		}
		// Use the targets of links.
		info, err := fs.Stat(tree, name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: %w", name, errNotRegular)
		}
		open := func() (io.ReadCloser, error) { return tree.Open(name) }
		entries = append(entries, Entry{Name: target, Mode: 0o644, Open: open, Size: info.Size()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing what goes to /%s of an image: %w", below, err)
	}
	return entries, nil
}

var errNotRegular = errors.New("is not a regular file")

// Write builds a layer of the entries in a new file, which must exist as long as the layer is used.
// Parent folders need not be among the entries. The memory does not depend on the size of the
// entries.
func Write(name string, entries []Entry, modified time.Time) (v1.Layer, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating the file of a layer: %w", err)
	}
	made, err := writeTo(file, entries, modified)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("writing a layer: %w", err)
	}
	made.name = name
	return made, nil
}

func writeTo(file *os.File, entries []Entry, modified time.Time) (*fileLayer, error) {
	compressed, plain := sha256.New(), sha256.New()
	counter := &counter{}
	zip, err := gzip.NewWriterLevel(io.MultiWriter(file, compressed, counter), gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if err := write(io.MultiWriter(zip, plain), withParents(entries), modified); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return &fileLayer{digest: hashOf(compressed), diffID: hashOf(plain), size: counter.bytes}, nil
}

type counter struct{ bytes int64 }

// Write counts the bytes.
func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

func hashOf(sum hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}
}

// fileLayer is a compressed layer in a file.
type fileLayer struct {
	name           string
	digest, diffID v1.Hash
	size           int64
}

// Digest returns the digest of the compressed layer.
func (l *fileLayer) Digest() (v1.Hash, error) { return l.digest, nil }

// DiffID returns the digest of the uncompressed layer.
func (l *fileLayer) DiffID() (v1.Hash, error) { return l.diffID, nil }

// Size returns the size of the compressed layer in bytes.
func (l *fileLayer) Size() (int64, error) { return l.size, nil }

// MediaType returns the type of a compressed layer.
func (*fileLayer) MediaType() (types.MediaType, error) { return types.OCILayer, nil }

// Compressed opens the file.
func (l *fileLayer) Compressed() (io.ReadCloser, error) { return os.Open(l.name) }

// Uncompressed opens the file and decompresses it.
func (l *fileLayer) Uncompressed() (io.ReadCloser, error) {
	file, err := os.Open(l.name)
	if err != nil {
		return nil, err
	}
	plain, err := gzip.NewReader(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{plain, file}, nil
}
