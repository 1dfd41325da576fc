package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// tree is the extracted directory of an image, below a local root. Layers are applied to it one by
// one. Whatever the names of entries, nothing is written outside the root, and no link leads out of
// it.
type tree struct {
	root *os.Root
	// dir is the directory in the image, without leading and trailing slashes; "." is the whole image.
	dir    string
	limits *Limits

	// exists is set if the image has the directory.
	exists bool
	// nodes are the files in the tree, by path below the root.
	nodes map[string]node
	bytes int64
	// entries is the number of further entries allowed in all layers.
	entries int64
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

func newTree(root *os.Root, dir string, limits *Limits) *tree {
	return &tree{
		root: root, dir: dir, limits: limits, exists: dir == ".",
		nodes: map[string]node{}, children: map[string]map[string]bool{}, entries: limits.MaxEntries, buffer: make([]byte, 128<<10),
	}
}

// begin starts a layer.
func (t *tree) begin() { t.fresh, t.cleared = map[string]bool{}, map[string]bool{} }

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// apply adds an entry of the current layer.
func (t *tree) apply(header *tar.Header, content io.Reader) error {
	t.entries--
	if t.entries < 0 {
		return fail(ReasonTooLarge, "%w: its layers have more than %d entries", errTooLarge, t.limits.MaxEntries)
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := entryName(header.Name)
	if err != nil {
		return err
	}
	dir, base := path.Split(name)
	if base == opaque {
		return t.hide(path.Clean(dir), true)
	}
	if hidden, ok := strings.CutPrefix(base, whiteout); ok {
		return t.hide(path.Join(dir, hidden), false)
	}
	local, inside := t.local(name)
	switch {
	case inside && local == ".", !inside && t.above(name):
		return t.applyRoot(inside, header)
	case !inside:
		return nil
	}
	if err := checkLocal(local); err != nil {
		return err
	}
	return t.write(local, header, content)
}

// entryName checks the name of an entry and returns it without leading and trailing slashes.
func entryName(name string) (string, error) {
	switch {
	case strings.HasPrefix(name, "/"):
		return "", fail(ReasonInvalid, "a layer holds the absolute path %q; an image's paths are relative to its root", clip(name))
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", fail(ReasonInvalid, "a layer holds the path %q, which leads upwards", clip(name))
	}
	return path.Clean(name), nil
}

// checkLocal returns an error for names that file systems or readers of the tree cannot handle.
func checkLocal(local string) error {
	if len(local) > maxPathBytes {
		return fail(ReasonInvalid, "a layer holds a path of %d bytes, at most %d are possible: %q", len(local), maxPathBytes, clip(local))
	}
	for element := range strings.SplitSeq(local, "/") {
		if len(element) > maxNameBytes {
			return fail(ReasonInvalid, "a layer holds a name of %d bytes, at most %d are possible: %q",
				len(element), maxNameBytes, clip(element))
		}
	}
	if !utf8.ValidString(local) {
		return fail(ReasonInvalid, "a layer holds the name %q, which is not UTF-8 text", clip(local))
	}
	return nil
}

// clip shortens a name for a message.
func clip(name string) string { return clipTo(name, 200) }

func clipTo(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// local returns the path below the root for a path of the image, and whether it is in the tree.
func (t *tree) local(name string) (string, bool) {
	switch t.dir {
	case ".":
		return name, true
	case name:
		return ".", true
	}
	return strings.CutPrefix(name, t.dir+"/")
}

// above reports whether the directory is below a path of the image.
func (t *tree) above(name string) bool {
	return name == "." || strings.HasPrefix(t.dir, name+"/")
}

// applyRoot applies an entry for the directory itself or for one of its parents. An entry that is
// not a directory replaces everything below it.
func (t *tree) applyRoot(itself bool, header *tar.Header) error {
	if header.Typeflag == tar.TypeDir {
		t.exists = t.exists || itself
		return nil
	}
	t.exists = false
	return t.removeBelow(".")
}

// hide removes content of lower layers at a path of the image. If content is set, it keeps the
// directory and removes only its content, as an opaque whiteout requires.
func (t *tree) hide(name string, content bool) error {
	local, inside := t.local(name)
	switch {
	case !inside && !t.above(name):
		return nil
	case inside && local != ".":
		return t.hideLocal(local, content)
	case !inside || !content:
		t.exists = t.dir == "." || len(t.fresh) > 0
	}
	return t.removeLower(".")
}

// isLower reports whether a path belongs to a layer below the current one.
func (t *tree) isLower(local string) bool { return !t.fresh[local] }

// hideLocal is hide for a path below the root.
func (t *tree) hideLocal(local string, content bool) error {
	if t.nodes[local].kind == tar.TypeDir {
		if err := t.removeLower(local); err != nil {
			return err
		}
	}
	if content || !t.isLower(local) {
		return nil
	}
	return t.remove(local)
}

// removeBelow removes the content of a directory.
func (t *tree) removeBelow(dir string) error {
	for name := range t.children[dir] {
		if err := t.removeBelow(name); err != nil {
			return err
		}
		if err := t.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// removeLower removes the content of a directory that belongs to lower layers. It scans a directory
// once for each layer, whatever the number of whiteouts.
func (t *tree) removeLower(dir string) error {
	if t.cleared[dir] {
		return nil
	}
	t.cleared[dir] = true
	for name := range t.children[dir] {
		if err := t.removeLower(name); err != nil {
			return err
		}
		if !t.isLower(name) {
			continue
		}
		if err := t.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// remove removes one file, link or empty directory, if it exists.
func (t *tree) remove(local string) error {
	found, ok := t.nodes[local]
	if !ok {
		return nil
	}
	if err := t.root.Remove(local); err != nil {
		return fail(ReasonLocal, "removing a file: %w", err)
	}
	t.bytes -= found.size
	delete(t.nodes, local)
	delete(t.fresh, local)
	in := path.Dir(local)
	delete(t.children[in], local)
	if len(t.children[in]) == 0 {
		delete(t.children, in)
	}
	return nil
}

// write writes an entry of the layer as a file, a directory or a link.
func (t *tree) write(local string, header *tar.Header, content io.Reader) error {
	if err := t.parents(local); err != nil {
		return err
	}
	t.exists = true
	switch header.Typeflag {
	case tar.TypeDir:
		return t.directory(local)
	case tar.TypeReg, tar.TypeRegA, tar.TypeGNUSparse, tar.TypeCont: //nolint:staticcheck // old archives have TypeRegA
		return t.file(local, header.Size, content)
	case tar.TypeLink:
		return t.hardLink(local, header.Linkname)
	case tar.TypeSymlink:
		return t.symbolicLink(local, header.Linkname)
	default:
		return fail(ReasonInvalid, "%q is neither a file nor a directory nor a link (tar type %q)", clip(t.inImage(local)), header.Typeflag)
	}
}

// inImage returns the path in the image, for messages.
func (t *tree) inImage(local string) string { return path.Join("/", t.dir, local) }

// parents creates the parent directories of a path.
func (t *tree) parents(local string) error {
	dir := path.Dir(local)
	if dir == "." || t.fresh[dir] && t.nodes[dir].kind == tar.TypeDir {
		return nil
	}
	if err := t.parents(dir); err != nil {
		return err
	}
	if found, ok := t.nodes[dir]; ok && found.kind != tar.TypeDir {
		return fail(ReasonInvalid, "%q lies below what is no directory", clip(t.inImage(local)))
	}
	return t.directory(dir)
}

func (t *tree) directory(local string) error {
	found, ok := t.nodes[local]
	if ok && found.kind == tar.TypeDir {
		t.fresh[local] = true
		return nil
	}
	if err := t.replace(local, node{kind: tar.TypeDir}); err != nil {
		return err
	}
	return t.written(t.root.Mkdir(local, 0o755))
}

func (t *tree) written(err error) error {
	if err != nil {
		return fail(ReasonLocal, "writing the content of the image: %w", err)
	}
	return nil
}

// replace removes the node at a path and records the next one.
func (t *tree) replace(local string, next node) error {
	if t.nodes[local].kind == tar.TypeDir {
		if err := t.removeBelow(local); err != nil {
			return err
		}
	}
	if err := t.remove(local); err != nil {
		return err
	}
	if len(t.nodes) >= t.limits.MaxFiles {
		return fail(ReasonTooLarge, "%w: its directory /%s holds more than %d files", errTooLarge, t.dir, t.limits.MaxFiles)
	}
	if next.size > t.limits.MaxFileBytes {
		return fail(ReasonTooLarge, "%w: file %q has %d bytes, at most %d are allowed",
			errTooLarge, clip(t.inImage(local)), next.size, t.limits.MaxFileBytes)
	}
	if next.size > t.limits.MaxBytes-t.bytes {
		return fail(ReasonTooLarge, "%w: its directory /%s holds more than %d bytes", errTooLarge, t.dir, t.limits.MaxBytes)
	}
	t.bytes += next.size
	t.nodes[local], t.fresh[local] = next, true
	in := path.Dir(local)
	if t.children[in] == nil {
		t.children[in] = map[string]bool{}
	}
	t.children[in][local] = true
	return nil
}

func (t *tree) file(local string, size int64, content io.Reader) error {
	if err := t.replace(local, node{kind: tar.TypeReg, size: size}); err != nil {
		return err
	}
	file, err := t.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return t.written(err)
	}
	to := &spoolFile{file: file, progress: func(int64) {}}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{content}, t.buffer)
	if closeErr := file.Close(); err == nil {
		return t.written(closeErr)
	}
	return err
}

func (t *tree) hardLink(local, target string) error {
	name, err := entryName(strings.TrimPrefix(target, "/"))
	if err != nil {
		return err
	}
	from, inside := t.local(name)
	found, ok := t.nodes[from]
	if !inside || !ok || found.kind != tar.TypeReg {
		return fail(ReasonInvalid, "%q is a hard link to %q, which is no file in /%s",
			clip(t.inImage(local)), clip(target), t.dir)
	}
	if from == local {
		return nil
	}
	if err := t.replace(local, found); err != nil {
		return err
	}
	return t.written(t.root.Link(from, local))
}

// symbolicLink creates a link that stays below the root. It resolves the target without following
// links and writes it as a relative path.
func (t *tree) symbolicLink(local, target string) error {
	resolved := target
	if !path.IsAbs(target) {
		resolved = path.Join(path.Dir(t.inImage(local)), target)
	}
	to, inside := t.local(strings.TrimPrefix(path.Clean(resolved), "/"))
	if resolved == "/" {
		to, inside = ".", t.dir == "."
	}
	if !inside || to == "" || checkLocal(to) != nil {
		return fail(ReasonInvalid, "%q is a link to %q, which leads out of /%s", clip(t.inImage(local)), clip(target), t.dir)
	}
	relative, err := filepath.Rel(path.Dir(local), to)
	if err != nil {
		return fail(ReasonInvalid, "%q is a link to %q: %w", clip(t.inImage(local)), clip(target), err)
	}
	if err := t.replace(local, node{kind: tar.TypeSymlink, size: 0}); err != nil {
		return err
	}
	return t.written(t.root.Symlink(relative, local))
}

var errEmptyTree = errors.New("is not in the image")

// result returns the number and size of the files in the tree.
func (t *tree) result() (files int, size int64, err error) {
	if !t.exists {
		return 0, 0, &failure{ReasonNoTree, fmt.Errorf("directory /%s %w", t.dir, errEmptyTree)}
	}
	for _, found := range t.nodes {
		if found.kind == tar.TypeReg {
			files++
		}
	}
	return files, t.bytes, nil
}
