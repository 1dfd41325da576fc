package fbc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/chandlery/chandlery/bundles"
)

// ignoreFile names the files that exclude others from the catalog, in the
// syntax of .gitignore.
const ignoreFile = ".indexignore"

// maxIgnoreBytes bounds an .indexignore file.
const maxIgnoreBytes = 1 << 20

// Files returns the paths of the files of the catalog, in the order of [fs.WalkDir]. If directories
// or files cannot be read, it returns [bundles.Problems] and the files that it found.
func Files(root fs.FS) ([]string, error) {
	var (
		files    []string
		patterns []gitignore.Pattern
		found    bundles.Problems
	)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			found = append(found, unreadable(name, err))
			return nil
		}
		switch {
		case entry.IsDir():
			return nil
		case entry.Name() != ignoreFile:
			files = append(files, name)
			return nil
		}
		more, err := readIgnore(root, name)
		if err != nil {
			found = append(found, unreadable(name, err))
		}
		patterns = append(patterns, more...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	if len(patterns) == 0 {
		return files, found.OrNil()
	}
	matcher := gitignore.NewMatcher(patterns)
	kept := files[:0]
	for _, name := range files {
		if !matcher.Match(strings.Split(name, "/"), false) {
			kept = append(kept, name)
		}
	}
	return kept, found.OrNil()
}

// readIgnore returns the patterns of one .indexignore file. They apply to its directory and below.
func readIgnore(root fs.FS, name string) ([]gitignore.Pattern, error) {
	data, err := readFile(root, name, maxIgnoreBytes)
	if err != nil {
		return nil, err
	}
	var domain []string
	if dir := path.Dir(name); dir != "." {
		domain = strings.Split(dir, "/")
	}
	var patterns []gitignore.Pattern
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, gitignore.ParsePattern(line, domain))
		}
	}
	return patterns, nil
}

var (
	errTooLarge  = errors.New("too large")
	errDirectory = errors.New("is a symbolic link to a directory")
	errIrregular = errors.New("is not a regular file")
	errBinary    = errors.New("is not text: it holds a NUL byte")
	errEncoding  = errors.New("is not UTF-8 text")
)

// probeBytes is the number of bytes that are read and checked in one go.
const probeBytes = 1 << 20

// openFile opens a file of at most limit bytes. It checks the type of the file first, because
// opening a pipe would block.
func openFile(root fs.FS, name string, limit int64) (fs.File, fs.FileInfo, error) {
	info, err := fs.Stat(root, name)
	if err != nil {
		return nil, nil, fmt.Errorf("looking at file: %w", err)
	}
	switch {
	case info.IsDir():
		return nil, nil, errDirectory
	case !info.Mode().IsRegular():
		return nil, nil, errIrregular
	case info.Size() > limit:
		return nil, nil, fmt.Errorf("%w: %d bytes, the limit is %d", errTooLarge, info.Size(), limit)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("opening file: %w", err)
	}
	return file, info, nil
}

// readFile reads a file of at most limit bytes.
func readFile(root fs.FS, name string, limit int64) ([]byte, error) {
	file, info, err := openFile(root, name, limit)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	data, err := readText(io.LimitReader(file, limit+1), info.Size())
	if err != nil {
		return nil, err
	}
	// The file may have grown since its size was read.
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
	}
	if !utf8.Valid(data) {
		return nil, errEncoding
	}
	return data, nil
}

// readText reads about size bytes. It stops at junk before it allocates the whole size.
func readText(from io.Reader, size int64) ([]byte, error) {
	var data bytes.Buffer
	for begin := 0; ; begin = data.Len() {
		n, err := io.CopyN(&data, from, probeBytes)
		if bytes.IndexByte(data.Bytes()[begin:], 0) >= 0 {
			return nil, errBinary
		}
		if errors.Is(err, io.EOF) {
			return data.Bytes(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading file: %w", err)
		}
		if begin == 0 {
			data.Grow(int(max(0, size-n)) + bytes.MinRead)
		}
	}
}

// unreadable returns the problem of a file or directory that cannot be read.
func unreadable(name string, err error) bundles.Problem {
	p := bundles.Problem{File: name, Message: err.Error(), Remedy: "make it readable or remove it"}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		p.Message = fmt.Sprintf("cannot be read: %s: %v", at.Op, at.Err)
		p.Unreadable = true
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		p.Remedy = "give the user that serves the catalog permission to read it"
	case errors.Is(err, fs.ErrNotExist):
		p.Remedy = "correct the path or put the file there"
	case errors.Is(err, errTooLarge):
		p.Remedy = "split the file"
	case errors.Is(err, errDirectory):
		p.Remedy = "put a real directory there, or exclude it by an .indexignore file"
	case errors.Is(err, errBinary), errors.Is(err, errEncoding):
		p.Remedy = "convert it to UTF-8, or exclude it by an .indexignore file if it is not part of the catalog"
	case errors.Is(err, errChanged):
		p.Remedy, p.Unreadable = "load the catalog again", true
	case errors.Is(err, errIrregular):
		p.Remedy = "remove it, or exclude it by an .indexignore file"
	}
	return p
}
