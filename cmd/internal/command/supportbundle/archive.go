package supportbundle

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one file of the bundle.
type file struct {
	path    string
	content []byte
}

// contents collects the files of a bundle, up to a size.
type contents struct {
	files []file
	room  int64
	// left lists what was left out.
	left []string
}

// add adds a file. A file that does not fit is recorded in left.
func (c *contents) add(path string, content []byte) {
	if int64(len(content)) > c.room {
		c.left = append(c.left, fmt.Sprintf("%s: left out: with its %d bytes the bundle would be larger than --max-bytes", path, len(content)))
		return
	}
	c.room -= int64(len(content))
	c.files = append(c.files, file{path: path, content: content})
}

// write writes the bundle. The same files produce the same bytes.
func (c *contents) write(out io.Writer, root string, at time.Time) error {
	slices.SortFunc(c.files, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for _, f := range c.files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: root + "/" + f.path, Size: int64(len(f.content)), Mode: 0o600,
			ModTime: at.UTC().Truncate(time.Second), Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", f.path, err)
		}
		if _, err := archive.Write(f.content); err != nil {
			return fmt.Errorf("writing %s: %w", f.path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}

// writeFile writes the bundle to a file atomically. No other user may read it.
func (c *contents) writeFile(path, root string, at time.Time) (err error) {
	// CreateTemp creates files with the mode 0600.
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	defer func() {
		if err != nil {
			_ = temporary.Close()
			_ = os.Remove(temporary.Name())
		}
	}()
	if err := c.write(temporary, root, at); err != nil {
		return err
	}
	if err := temporary.Sync(); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if err := temporary.Close(); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}

// part returns any text as one element of a path.
func part(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r < ' ' {
			return '_'
		}
		return r
	}, text)
	if text == "" || text == "." || text == ".." {
		return "_"
	}
	return text
}
