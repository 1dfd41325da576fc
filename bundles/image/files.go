package image

import (
	"archive/tar"
	"io"
	"os"
	"path"
	"strings"
)

// subtree is a directory in an image, without leading and trailing slashes; "." is the whole image.
type subtree string

// local returns the path below the root for a path of the image, and whether it is in the tree.
func (s subtree) local(name string) (string, bool) {
	switch string(s) {
	case ".":
		return name, true
	case name:
		return ".", true
	}
	return strings.CutPrefix(name, string(s)+"/")
}

// above reports whether the directory is below a path of the image.
func (s subtree) above(name string) bool {
	return name == "." || strings.HasPrefix(string(s), name+"/")
}

// inImage returns the path in the image, for messages.
func (s subtree) inImage(local string) string { return path.Join("/", string(s), local) }

// layeredFiles are the files of a tree that several layers write.
type layeredFiles struct {
	root   *os.Root
	dir    subtree
	limits *Limits

	// nodes are the files, by path below the root.
	nodes map[string]node
	bytes int64
	// children are the paths directly in each directory that has any.
	children map[string]map[string]bool
	// fresh are the paths that the current layer has written. Whiteouts of the layer do not remove these.
	fresh map[string]bool
	// cleared are the directories whose content of lower layers has been removed. A layer adds no
	// such content, so they need not be scanned again.
	cleared map[string]bool

	buffer []byte
}

// node is a file, a directory or a symbolic link.
type node struct {
	kind byte
	size int64
}

// begin starts a layer.
func (f *layeredFiles) begin() { f.fresh, f.cleared = map[string]bool{}, map[string]bool{} }

// hideLocal removes content of lower layers at a path below the root. If content is set, it keeps the
// directory and removes only its content.
func (f *layeredFiles) hideLocal(local string, content bool) error {
	if f.nodes[local].kind == tar.TypeDir {
		if err := f.removeLower(local); err != nil {
			return err
		}
	}
	if content || f.fresh[local] {
		return nil
	}
	return f.remove(local)
}

// removeBelow removes the content of a directory.
func (f *layeredFiles) removeBelow(dir string) error {
	for name := range f.children[dir] {
		if err := f.removeBelow(name); err != nil {
			return err
		}
		if err := f.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// removeLower removes the content of a directory that belongs to lower layers. It scans a directory
// once for each layer, whatever the number of whiteouts.
func (f *layeredFiles) removeLower(dir string) error {
	if f.cleared[dir] {
		return nil
	}
	f.cleared[dir] = true
	for name := range f.children[dir] {
		if err := f.removeLower(name); err != nil {
			return err
		}
		if f.fresh[name] {
			continue
		}
		if err := f.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// remove removes one file, link or empty directory, if it exists.
func (f *layeredFiles) remove(local string) error {
	found, ok := f.nodes[local]
	if !ok {
		return nil
	}
	if err := f.root.Remove(local); err != nil {
		return fail(ReasonLocal, "removing a file: %w", err)
	}
	f.bytes -= found.size
	delete(f.nodes, local)
	delete(f.fresh, local)
	in := path.Dir(local)
	delete(f.children[in], local)
	if len(f.children[in]) == 0 {
		delete(f.children, in)
	}
	return nil
}

// parents creates the parent directories of a path.
func (f *layeredFiles) parents(local string) error {
	dir := path.Dir(local)
	if dir == "." || f.fresh[dir] && f.nodes[dir].kind == tar.TypeDir {
		return nil
	}
	if err := f.parents(dir); err != nil {
		return err
	}
	if found, ok := f.nodes[dir]; ok && found.kind != tar.TypeDir {
		return fail(ReasonInvalid, "%q lies below what is no directory", clip(f.dir.inImage(local)))
	}
	return f.directory(dir)
}

func (f *layeredFiles) directory(local string) error {
	found, ok := f.nodes[local]
	if ok && found.kind == tar.TypeDir {
		f.fresh[local] = true
		return nil
	}
	if err := f.replace(local, node{kind: tar.TypeDir}); err != nil {
		return err
	}
	return written(f.root.Mkdir(local, 0o755))
}

func written(err error) error {
	if err != nil {
		return fail(ReasonLocal, "writing the content of the image: %w", err)
	}
	return nil
}

// replace removes the node at a path and records the next one.
func (f *layeredFiles) replace(local string, next node) error {
	if f.nodes[local].kind == tar.TypeDir {
		if err := f.removeBelow(local); err != nil {
			return err
		}
	}
	if err := f.remove(local); err != nil {
		return err
	}
	if len(f.nodes) >= f.limits.MaxFiles {
		return fail(ReasonTooLarge, "%w: its directory /%s holds more than %d files", errTooLarge, f.dir, f.limits.MaxFiles)
	}
	if next.size > f.limits.MaxFileBytes {
		return fail(ReasonTooLarge, "%w: file %q has %d bytes, at most %d are allowed",
			errTooLarge, clip(f.dir.inImage(local)), next.size, f.limits.MaxFileBytes)
	}
	if next.size > f.limits.MaxBytes-f.bytes {
		return fail(ReasonTooLarge, "%w: its directory /%s holds more than %d bytes", errTooLarge, f.dir, f.limits.MaxBytes)
	}
	f.bytes += next.size
	f.nodes[local], f.fresh[local] = next, true
	in := path.Dir(local)
	if f.children[in] == nil {
		f.children[in] = map[string]bool{}
	}
	f.children[in][local] = true
	return nil
}

func (f *layeredFiles) file(local string, size int64, content io.Reader) error {
	if err := f.replace(local, node{kind: tar.TypeReg, size: size}); err != nil {
		return err
	}
	file, err := f.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return written(err)
	}
	to := &spoolFile{file: file, progress: func(int64) {}}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{content}, f.buffer)
	if closeErr := file.Close(); err == nil {
		return written(closeErr)
	}
	return err
}
