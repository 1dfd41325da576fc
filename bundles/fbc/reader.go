package fbc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles"
)

// Reader reads a catalog package by package. It stores the positions of the objects and reads the
// objects on demand, so the whole catalog need not be in memory.
//
// A Reader is safe for concurrent use.
type Reader struct {
	root     fs.FS
	options  Options
	files    []fileInfo
	records  []record
	groups   map[string][]int
	names    []string
	problems bundles.Problems
	gaps     gaps
	// spaces are the unused workspaces. A sync.Pool would lose them with each garbage collection,
	// and short memory causes many collections.
	mu     sync.Mutex
	spaces []*workspace
}

// fileInfo identifies a file as it was when it was scanned.
type fileInfo struct {
	name    string
	size    int64
	changed time.Time
}

// workspace holds the buffers for decoding objects.
type workspace struct {
	text, manifest []byte
	typed          typed
}

// Open scans the files below root for objects of the catalog. Files are read in parallel, which
// does not affect the result.
//
// Problems of files are not an error: see [Reader.Problems].
func Open(ctx context.Context, root fs.FS, options Options) (*Reader, error) {
	files, err := Files(root)
	unlisted := bundles.Problems(nil)
	if err != nil && !errors.As(err, &unlisted) {
		return nil, err
	}
	r := &Reader{root: root, options: options.withDefaults(), groups: make(map[string][]int)}
	l := &loader{root: root, options: r.options}
	found := make([]foundFile, len(files)+1)
	// The last element holds what could not be listed.
	found[len(files)] = foundFile{problems: unlisted, gaps: gaps{anything: len(unlisted) > 0}}
	next := atomic.Int64{}
	group, groupCtx := errgroup.WithContext(ctx)
	for range min(r.options.Concurrency, len(files)) {
		group.Go(func() error {
			scanner := &jsonScanner{options: r.options}
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return nil
				}
				if err := context.Cause(groupCtx); err != nil {
					return fmt.Errorf("loading catalog: %w", err)
				}
				found[i] = l.file(scanner, files[i])
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := r.collect(ctx, found); err != nil {
		return nil, err
	}
	return r, nil
}

// collect combines the results of all files.
func (r *Reader) collect(ctx context.Context, found []foundFile) error {
	r.files = make([]fileInfo, len(found))
	for i := range found {
		r.files[i] = found[i].info
		r.problems = append(r.problems, found[i].problems...)
		r.gaps.merge(found[i].gaps)
		for _, rec := range found[i].records {
			rec.file = i
			r.groups[rec.group()] = append(r.groups[rec.group()], len(r.records))
			r.records = append(r.records, rec)
		}
	}
	for name := range r.groups {
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	// Objects without a package that cannot be decoded may be anything.
	ignore := func(int, object) {}
	return r.each(ctx, "", ignore, func(head header, _ bundles.Problem) { r.gaps.add(head) })
}

// Problems returns everything that prevents files from being read as objects of a catalog.
// [Reader.Package] returns the problems of an object that belongs to a package.
func (r *Reader) Problems() bundles.Problems { return slices.Clone(r.problems) }

// Packages returns the names of all packages, declared or only named by other objects, in byte
// order. Objects that name no package belong to the empty name.
func (r *Reader) Packages() []string { return slices.Clone(r.names) }

// Size returns the number of bytes of a package in the catalog. Decoding it takes about as much memory.
func (r *Reader) Size(name string) int64 {
	var n int64
	for _, i := range r.groups[name] {
		n += r.records[i].size
	}
	return n
}

// Close releases the resources of the reader, which must not be used afterwards.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records, r.groups, r.names, r.spaces = nil, nil, nil, nil
	return nil
}

// Package decodes the part of the catalog that belongs to a package. This part holds the package,
// once for each declaration, with everything that belongs to it. It also holds strays and objects
// of other schemas that name the package.
//
// The error is [bundles.Problems] with what could not be decoded, or wraps the cause of ctx. With
// problems, Package also returns everything else, in a package that is marked as incomplete.
func (r *Reader) Package(ctx context.Context, name string) (*bundles.Catalog, error) {
	p, err := r.part(ctx, name)
	if err != nil {
		return nil, err
	}
	return &p.catalog, p.problems.OrNil()
}

// part is the content of the catalog for one package.
type part struct {
	catalog  bundles.Catalog
	problems bundles.Problems
	gaps     gaps
	// strays and custom are the places of those objects in the catalog.
	strays, custom []int
}

func (r *Reader) part(ctx context.Context, name string) (*part, error) {
	var (
		p     part
		found []object
		at    []int
	)
	err := r.each(ctx, name, func(i int, o object) {
		found, at = append(found, o), append(at, i)
	}, func(head header, problem bundles.Problem) {
		p.gaps.add(head)
		p.problems = append(p.problems, problem)
	})
	if err != nil {
		return nil, err
	}
	p.assemble(name, found, at, r.gaps)
	return &p, nil
}

// each decodes the objects of a package in the order of the files.
func (r *Reader) each(
	ctx context.Context, name string, visit func(i int, o object), failed func(header, bundles.Problem),
) error {
	return r.walk(ctx, name, func(opened *openedFile, space *workspace, i int) error {
		rec := &r.records[i]
		o, err := r.object(opened, space, rec, r.origin(rec))
		if err == nil {
			visit(i, o)
		}
		return err
	}, failed)
}

// origin returns the position of an object.
func (r *Reader) origin(rec *record) bundles.Origin {
	return bundles.Origin{File: r.files[rec.file].name, Line: rec.line}
}

// walk calls read with the number of each object of a package, in the order of the files. It calls
// failed with the problem of an object that could not be read.
func (r *Reader) walk(
	ctx context.Context, name string, read func(*openedFile, *workspace, int) error, failed func(header, bundles.Problem),
) error {
	space := r.takeSpace()
	defer r.returnSpace(space)
	opened := openedFile{reader: r, index: -1}
	defer opened.close()
	for _, i := range r.groups[name] {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("loading package %q: %w", name, err)
		}
		err := read(&opened, space, i)
		if err == nil {
			continue
		}
		rec := &r.records[i]
		problem := rec.problem(err)
		problem.File = r.origin(rec).String()
		if unread := (*readError)(nil); errors.As(err, &unread) {
			*problem = unreadable(r.origin(rec).File, unread.err)
		}
		failed(rec.header, *problem)
	}
	return nil
}

func (r *Reader) takeSpace() *workspace {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.spaces) - 1
	if last < 0 {
		return &workspace{}
	}
	space := r.spaces[last]
	r.spaces = r.spaces[:last]
	return space
}

// maxKeptBytes is the size up to which a buffer for an object's text is reused.
const maxKeptBytes = 1 << 20

func (r *Reader) returnSpace(space *workspace) {
	if cap(space.text) > maxKeptBytes {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spaces = append(r.spaces, space)
}

// object reads and decodes one object.
func (r *Reader) object(file *openedFile, space *workspace, rec *record, origin bundles.Origin) (object, error) {
	var err error
	if space.text, err = file.read(space.text, rec); err != nil {
		return object{}, &readError{err}
	}
	o, err := space.decode(rec, origin, r.options.MaxDepth)
	if errors.Is(err, errChanged) {
		return object{}, &readError{err}
	}
	return o, err
}

// readError is the error of an object that could not be read again.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

func (e *readError) Unwrap() error { return e.err }

var errChanged = errors.New("has changed while it was being read")

// decode decodes the object in the text.
func (w *workspace) decode(rec *record, origin bundles.Origin, maxDepth int) (object, error) {
	if text, ok := w.plain(rec); ok {
		if o, ok := w.typed.decode(text, rec.header, origin); ok {
			return o, o.check(&w.manifest)
		}
	}
	fields, err := decodeText(w.text, rec.form == formYAML)
	if err != nil {
		return object{}, err
	}
	if head, problem := identify(fields); problem != nil || head != rec.header {
		return object{}, errChanged
	}
	o, err := decode(fields, rec.header, origin, maxDepth)
	if err != nil {
		return object{}, err
	}
	return o, o.check(&w.manifest)
}

// plain returns the object as plain JSON, if possible.
func (w *workspace) plain(rec *record) ([]byte, bool) {
	if !rec.identified || !utf8.Valid(w.text) {
		return nil, false
	}
	if rec.form != formYAML {
		return w.text, true
	}
	var converted []byte
	err := yamlDocuments(w.text, 1, func(d document) error {
		converted = d.json
		return nil
	})
	return converted, err == nil && converted != nil
}

// decodeText decodes the text of one object that has been decoded before.
func decodeText(text []byte, yaml bool) (map[string]any, error) {
	var (
		fields map[string]any
		count  int
	)
	visit := func(d document) error {
		var err error
		fields, err = d.decoded()
		count++
		return err
	}
	var err error
	if yaml {
		err = yamlDocuments(text, 1, visit)
	} else {
		_, _, err = jsonValues(text, visit)
	}
	if err != nil || count != 1 {
		return nil, errChanged
	}
	return fields, nil
}

// openedFile reads objects from one file at a time.
type openedFile struct {
	reader *Reader
	index  int
	file   fs.File
	err    error
	// at is the number of bytes read from the file.
	at int64
}

func (f *openedFile) close() {
	if f.file != nil {
		_ = f.file.Close() // nothing was written
		f.file = nil
	}
}

// read returns the text of an object. It uses the buffer if it is large enough.
func (f *openedFile) read(buffer []byte, rec *record) ([]byte, error) {
	if f.index != rec.file || f.at > rec.offset {
		f.close()
		f.index, f.at = rec.file, 0
		f.err = f.open(f.reader.files[rec.file])
	}
	if f.err != nil {
		return buffer, f.err
	}
	if err := f.seek(rec.offset); err != nil {
		return buffer, err
	}
	buffer = slices.Grow(buffer[:0], int(rec.size))[:rec.size]
	n, err := io.ReadFull(f.file, buffer)
	f.at += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return buffer, errChanged
	}
	if err != nil {
		return buffer, fmt.Errorf("reading file: %w", err)
	}
	return buffer, nil
}

func (f *openedFile) open(want fileInfo) error {
	file, info, err := openFile(f.reader.root, want.name, f.reader.options.MaxFileBytes)
	if err != nil {
		return err
	}
	f.file = file
	if info.Size() != want.size || !info.ModTime().Equal(want.changed) {
		return errChanged
	}
	return nil
}

// seek moves to an offset.
func (f *openedFile) seek(offset int64) error {
	if f.at == offset {
		return nil
	}
	var err error
	if seeker, ok := f.file.(io.Seeker); ok {
		_, err = seeker.Seek(offset, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, f.file, offset-f.at)
	}
	if errors.Is(err, io.EOF) {
		return errChanged
	}
	if err != nil {
		return fmt.Errorf("reading file: %w", err)
	}
	f.at = offset
	return nil
}
