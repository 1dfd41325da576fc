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
	*layeredFiles

	// exists is set if the image has the directory.
	exists bool
	// entries is the number of further entries allowed in all layers.
	entries int64
}

func newTree(root *os.Root, dir string, limits *Limits) *tree {
	return &tree{
		exists: dir == ".", entries: limits.MaxEntries,
		layeredFiles: &layeredFiles{
			root: root, dir: subtree(dir), limits: limits,
			nodes: map[string]node{}, children: map[string]map[string]bool{}, buffer: make([]byte, 128<<10),
		},
	}
}

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
	local, inside := t.dir.local(name)
	switch {
	case inside && local == ".", !inside && t.dir.above(name):
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
	if n := strings.Count(local, "/") + 1; n > maxPathElements {
		return fail(ReasonInvalid, "a layer holds a path of %d elements, at most %d are possible: %q", n, maxPathElements, clip(local))
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
	local, inside := t.dir.local(name)
	switch {
	case !inside && !t.dir.above(name):
		return nil
	case inside && local != ".":
		return t.hideLocal(local, content)
	case !inside || !content:
		t.exists = t.dir == "." || len(t.fresh) > 0
	}
	return t.removeLower(".")
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
		return fail(ReasonInvalid, "%q is neither a file nor a directory nor a link (tar type %q)", clip(t.dir.inImage(local)), header.Typeflag)
	}
}

func (t *tree) hardLink(local, target string) error {
	name, err := entryName(strings.TrimPrefix(target, "/"))
	if err != nil {
		return err
	}
	from, inside := t.dir.local(name)
	found, ok := t.nodes[from]
	if !inside || !ok || found.kind != tar.TypeReg {
		return fail(ReasonInvalid, "%q is a hard link to %q, which is no file in /%s",
			clip(t.dir.inImage(local)), clip(target), t.dir)
	}
	if from == local {
		return nil
	}
	if err := t.replace(local, found); err != nil {
		return err
	}
	return written(t.root.Link(from, local))
}

// symbolicLink creates a link that stays below the root. It resolves the target without following
// links and writes it as a relative path.
func (t *tree) symbolicLink(local, target string) error {
	resolved := target
	if !path.IsAbs(target) {
		resolved = path.Join(path.Dir(t.dir.inImage(local)), target)
	}
	to, inside := t.dir.local(strings.TrimPrefix(path.Clean(resolved), "/"))
	if resolved == "/" {
		to, inside = ".", t.dir == "."
	}
	if !inside || to == "" || checkLocal(to) != nil {
		return fail(ReasonInvalid, "%q is a link to %q, which leads out of /%s", clip(t.dir.inImage(local)), clip(target), t.dir)
	}
	relative, err := filepath.Rel(path.Dir(local), to)
	if err != nil {
		return fail(ReasonInvalid, "%q is a link to %q: %w", clip(t.dir.inImage(local)), clip(target), err)
	}
	if err := t.replace(local, node{kind: tar.TypeSymlink, size: 0}); err != nil {
		return err
	}
	return written(t.root.Symlink(relative, local))
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
