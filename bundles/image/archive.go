package image

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Archive writes the directory of an image, and the file that names it, as a compressed archive. root is the root of
// the image's files. These do not include the labels of the image. [Store.Import] reads the archive.
func (w *Tree) Archive(to io.Writer, root *os.Root, limits Limits) error {
	inMetadata := strings.Trim(w.Metadata, "/")
	labels, err := annotationsIn(root, inMetadata)
	if err != nil {
		return err
	}
	dir, err := w.dir(labels)
	if err != nil {
		return err
	}
	if dir == "." {
		return fail(ReasonInvalid, "its manifests are in the root directory, from which a node cannot hand them over")
	}
	compressed := gzip.NewWriter(to)
	a := &archiver{root: root, to: tar.NewWriter(compressed), limits: limits.withDefaults()}
	for _, one := range []string{path.Join(inMetadata, annotationsName), dir} {
		if err := fs.WalkDir(root.FS(), one, a.add); err != nil {
			return fmt.Errorf("archiving /%s: %w", one, err)
		}
	}
	if err := errors.Join(a.to.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return nil
}

// annotationsIn returns the annotations in the metadata directory of an image; none if it has no such directory.
func annotationsIn(root *os.Root, inMetadata string) (map[string]string, error) {
	metadata, err := root.OpenRoot(inMetadata)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fail(ReasonLocal, "opening /%s: %w", inMetadata, err)
	}
	defer metadata.Close() //nolint:errcheck // nothing was written
	return readAnnotations(metadata, inMetadata)
}

// archiver writes files to an archive.
type archiver struct {
	root   *os.Root
	to     *tar.Writer
	limits Limits
	files  int
	bytes  int64
}

// add writes one file, directory or link. Other files are left out.
func (a *archiver) add(name string, entry fs.DirEntry, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	a.files++
	if a.files > a.limits.MaxFiles {
		return fail(ReasonTooLarge, "%w: its manifests are more than %d files", errTooLarge, a.limits.MaxFiles)
	}
	switch {
	case entry.IsDir():
		return a.to.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755})
	case entry.Type()&fs.ModeSymlink != 0:
		target, err := a.root.Readlink(name)
		if err != nil {
			return err //nolint:wrapcheck // names the file
		}
		return a.to.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777})
	case entry.Type().IsRegular():
		return a.addFile(name)
	default:
		return nil
	}
}

func (a *archiver) addFile(name string) error {
	file, err := a.root.Open(name)
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	if a.bytes += info.Size(); a.bytes > a.limits.MaxBytes {
		return fail(ReasonTooLarge, "%w: its manifests have more than %d bytes", errTooLarge, a.limits.MaxBytes)
	}
	if err := a.to.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: info.Size(), Mode: 0o644}); err != nil {
		return err //nolint:wrapcheck // the caller names the directory
	}
	_, err = io.CopyN(a.to, file, info.Size())
	return err //nolint:wrapcheck // the caller names the directory
}

// unarchive extracts the directory of an image from an archive.
func (c *Client) unarchive(ctx context.Context, what Tree, archive io.Reader, dir, scratch string) (*Extracted, error) {
	file, err := temporary(scratch)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is deleted
	to := &spoolFile{file: file, progress: func(int64) {}}
	if _, err := io.Copy(to, archive); err != nil {
		return nil, fmt.Errorf("copying the archive: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fail(ReasonLocal, "opening the directory for the content: %w", err)
	}
	defer root.Close() //nolint:errcheck // what was written has been closed
	e := &extraction{session: &session{client: c}, what: &what, scratch: scratch, archive: file}
	extracted, err := e.unlabelled(ctx, root)
	if err != nil {
		return nil, err
	}
	files, size, err := extracted.result()
	if err != nil {
		return nil, what.missing(nil, err)
	}
	return &Extracted{Dir: "/" + strings.TrimPrefix(string(extracted.dir), "."), Files: files, Bytes: size}, nil
}
