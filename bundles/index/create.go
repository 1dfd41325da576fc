package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/chandlery/chandlery/bundles"
)

// Source is a catalog that can be read package by package.
type Source interface { //nolint:interfacebloat // an index needs all four, of the same catalog
	// Packages returns the names of all packages, in byte order. An empty name stands for objects
	// without a package.
	Packages() []string
	// Package reads the objects of one package. It is called once for each package, for several in
	// parallel. The caller may change the result. The error is [bundles.Problems] with what could
	// not be read.
	Package(ctx context.Context, name string) (*bundles.Catalog, error)
	// Size returns the approximate number of bytes of a package in the catalog.
	Size(name string) int64
	// Problems returns the problems of the catalog that belong to no package.
	Problems() bundles.Problems
}

// Options configure the creation of an index.
type Options struct {
	// Sources are the files of the catalog. Later they show whether the index still matches the catalog.
	Sources []SourceFile
	// Digest identifies the catalog; see [Info.SourceDigest].
	Digest [32]byte
	// Progress is called after each package with the number of finished packages; nil for nothing.
	// Calls do not overlap.
	Progress func(done, all int)
	// Validated is set if the catalog was validated by other rules than [bundles.Catalog.Validate],
	// which is then not called.
	Validated bool
	// Durable waits until the file is on the disk.
	Durable bool
}

// SourceFile is a file that an index was created from.
type SourceFile struct {
	// Name is the path below the catalog's root.
	Name string
	// Size is in bytes.
	Size int64
	// ModTime is the modification time of the file, in nanoseconds since 1970.
	ModTime int64
	// Sum is a checksum of the content.
	Sum uint64
}

// inFlightBytes bounds the packages in progress, by their size in the catalog. A larger package is
// processed alone.
const inFlightBytes = 6 << 20

// Create writes the index of a catalog to a file. The file gets its name after it is complete, and
// replaces a file of that name. Create returns the index that it has written. The same content
// produces the same file. The error is [bundles.Problems] when the catalog cannot be served; then
// nothing is written.
func Create(ctx context.Context, name string, from Source, o Options) (*Index, error) {
	dir, base := filepath.Split(name)
	dir = cmp.Or(dir, ".")
	unfinished := "." + base + ".chandlery-tmp-"
	removeLeftOver(dir, unfinished)
	file, err := os.CreateTemp(dir, unfinished+"*")
	if err != nil {
		return nil, fmt.Errorf("creating index: %w", err)
	}
	hold(file)
	x, err := finishFile(ctx, file, name, from, o)
	if err != nil {
		// Report the original error and not a failed removal.
		_ = os.Remove(file.Name())
		return nil, err
	}
	return x, nil
}

// removeLeftOver removes unfinished files of killed processes: files that are not locked.
func removeLeftOver(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) || !entry.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, entry.Name())
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		if hold(file) {
			// The file may not exist any more. Otherwise it only takes space.
			_ = os.Remove(name)
		}
		_ = file.Close()
	}
}

func finishFile(ctx context.Context, file *os.File, name string, from Source, o Options) (*Index, error) {
	x, err := writeFile(ctx, file, from, o)
	if err == nil {
		// A container may run as any user, and the file holds no secret.
		err = file.Chmod(0o644)
	}
	if err == nil && o.Durable {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return nil, fmt.Errorf("creating index: %w", err)
	}
	if mapped := FileOf(x); mapped != nil {
		mapped.name = name
	}
	return x, nil
}

// CreateTemp creates the index of a catalog in an unnamed file that exists as long as the index. If
// dir is empty, it uses the directory for temporary files.
func CreateTemp(ctx context.Context, dir string, from Source, o Options) (*Index, error) {
	file, err := os.CreateTemp(dir, "chandlery-index-*")
	if err != nil {
		return nil, fmt.Errorf("creating index: %w", err)
	}
	defer file.Close() //nolint:errcheck // the mapping stays
	if err := os.Remove(file.Name()); err != nil {
		return nil, fmt.Errorf("creating index: %w", err)
	}
	return writeFile(ctx, file, from, o)
}

// writeFile writes an index to a file and maps it.
func writeFile(ctx context.Context, file *os.File, from Source, o Options) (*Index, error) {
	if err := write(ctx, file, spillTo(filepath.Dir(file.Name())), from, o); err != nil {
		return nil, err
	}
	return openFile(file)
}

// Build creates the index of a catalog in memory. [bundles.Catalog.Validate] must accept the
// catalog; otherwise Build may fail, with [bundles.Problems] if the problem is known. The index
// does not refer to the catalog afterwards.
func Build(ctx context.Context, catalog *bundles.Catalog) (*Index, error) {
	return CreateInMemory(ctx, newCatalogSource(catalog), Options{})
}

// CreateInMemory creates an index in memory, for environments without a place for files.
func CreateInMemory(ctx context.Context, from Source, o Options) (*Index, error) {
	var file memoryFile
	if err := write(ctx, &file, nil, from, o); err != nil {
		return nil, err
	}
	return newIndex(newMapping(slices.Clip(file.bytes)))
}

// memoryFile is a file in memory.
type memoryFile struct {
	bytes []byte
	at    int
}

func (f *memoryFile) Write(p []byte) (int, error) {
	n := copy(f.bytes[f.at:], p)
	f.bytes = append(f.bytes, p[n:]...)
	f.at += len(p)
	return len(p), nil
}

// Seek moves to a position that has been written.
func (f *memoryFile) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekStart || offset < 0 || offset > int64(len(f.bytes)) {
		return 0, errSeek
	}
	f.at = int(offset)
	return offset, nil
}

var errSeek = errors.New("seeking to where nothing is")

// catalogSource is a catalog in memory.
type catalogSource struct {
	names []string
	parts map[string]*bundles.Catalog
}

func newCatalogSource(catalog *bundles.Catalog) *catalogSource {
	s := &catalogSource{parts: make(map[string]*bundles.Catalog)}
	part := func(name string) *bundles.Catalog {
		if s.parts[name] == nil {
			s.names = append(s.names, name)
			s.parts[name] = &bundles.Catalog{}
		}
		return s.parts[name]
	}
	for _, p := range catalog.Packages {
		part(p.Name).Packages = append(part(p.Name).Packages, clonePackage(p))
	}
	for i := range catalog.Custom {
		p := part(catalog.Custom[i].Package)
		p.Custom = append(p.Custom, catalog.Custom[i])
	}
	for _, stray := range catalog.Strays {
		part(stray.Package).Strays = append(part(stray.Package).Strays, stray)
	}
	slices.Sort(s.names)
	return s
}

// clonePackage returns a copy of a package that the encoder may change.
func clonePackage(p *bundles.Package) *bundles.Package {
	out := *p
	out.Bundles = make([]*bundles.Bundle, len(p.Bundles))
	for i, b := range p.Bundles {
		clone := *b
		out.Bundles[i] = &clone
	}
	return &out
}

// Packages implements [Source].
func (s *catalogSource) Packages() []string { return s.names }

// Package implements [Source].
func (s *catalogSource) Package(_ context.Context, name string) (*bundles.Catalog, error) {
	return s.parts[name], nil
}

// Size implements [Source]. It returns 0 because all packages are in memory.
func (s *catalogSource) Size(string) int64 { return 0 }

// Problems implements [Source].
func (s *catalogSource) Problems() bundles.Problems { return nil }

// write reads, encodes and writes a catalog. Packages are read and encoded in parallel and written
// in their order. Data that does not fit into memory goes to files that spill creates.
func write(ctx context.Context, out io.WriteSeeker, spill func() (*os.File, error), from Source, o Options) (err error) {
	w, err := newWriter(out, spill)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := encodePackages(ctx, w, from, o); err != nil {
		return err
	}
	w.addSources(o.Sources)
	return w.finish(out, o.Digest)
}

// encodePackages passes all packages to the writer.
func encodePackages(ctx context.Context, w *writer, from Source, o Options) error {
	c := &encoding{
		from: from, names: from.Packages(), validated: o.Validated, writer: w, progress: o.Progress, problems: from.Problems(),
	}
	c.changed.L = &c.mu
	group, groupCtx := errgroup.WithContext(ctx)
	defer context.AfterFunc(groupCtx, c.abandon)()
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error { return c.work(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if c.written < len(c.names) {
		return fmt.Errorf("building index: %w", context.Cause(ctx))
	}
	return c.problems.OrNil()
}

// encoding coordinates parallel encoders. Packages are written in their order, and the packages in
// progress are bounded by memory.
type encoding struct {
	from      Source
	names     []string
	validated bool
	progress  func(done, all int)

	mu      sync.Mutex
	changed sync.Cond
	// begun and written are numbers of packages. bytes is the size of the packages between them.
	begun, written int
	bytes          int64
	ended          bool

	// Only the goroutine whose turn it is uses these.
	writer   *writer
	problems bundles.Problems
}

// work encodes one package after the other.
func (c *encoding) work(ctx context.Context) error {
	for {
		turn, ok := c.begin()
		if !ok {
			return nil
		}
		encoded, err := encodePart(ctx, c.from, c.names[turn], c.validated)
		var found bundles.Problems
		if err != nil && !errors.As(err, &found) {
			return err
		}
		if !c.wait(turn) {
			return nil
		}
		c.problems = append(c.problems, found...)
		if len(c.problems) == 0 {
			if err := c.writer.addPart(encoded); err != nil {
				return err
			}
		}
		c.end(turn)
	}
}

// begin returns the next package when there is memory for it; false if there is none left.
func (c *encoding) begin() (turn int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended && c.begun < len(c.names) {
		size := c.from.Size(c.names[c.begun])
		if c.begun == c.written || c.bytes+size <= inFlightBytes {
			c.begun++
			c.bytes += size
			return c.begun - 1, true
		}
		c.changed.Wait()
	}
	return 0, false
}

// wait returns when all previous packages have been written; false if the encoding has been aborted.
func (c *encoding) wait(turn int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.written < turn && !c.ended {
		c.changed.Wait()
	}
	return !c.ended
}

func (c *encoding) end(turn int) {
	if c.progress != nil {
		c.progress(turn+1, len(c.names))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written++
	c.bytes -= c.from.Size(c.names[turn])
	c.changed.Broadcast()
}

// abandon ends all waits.
func (c *encoding) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.changed.Broadcast()
}

// encodedPart is the encoded content of the catalog for one package.
type encodedPart struct {
	pkg    *encodedPackage // nil if the catalog lacks the package
	custom []encodedCustom
}

// encodedCustom is an object of a custom schema.
type encodedCustom struct {
	schema, pkg string
	message     []byte
}

// encodePart reads, checks and encodes the objects of one package. validated omits the check.
func encodePart(ctx context.Context, from Source, name string, validated bool) (*encodedPart, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("building index: %w", err)
	}
	part, err := from.Package(ctx, name)
	var problems bundles.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, fmt.Errorf("reading package: %w", err)
	}
	if !validated {
		problems = append(problems, bundles.AsProblems(part.Validate())...)
	}
	if err := problems.OrNil(); err != nil {
		return nil, fmt.Errorf("checking package: %w", err)
	}
	out := &encodedPart{}
	for _, p := range part.Packages {
		if out.pkg, err = encodePackage(p); err != nil {
			return nil, fmt.Errorf("encoding package: %w", bundles.Problems{{
				File: p.Origin.String(), Package: p.Name, Message: err.Error(), Remedy: "correct the package",
			}})
		}
	}
	for i := range part.Custom {
		c := &part.Custom[i]
		message, err := encodeStruct(c.Blob)
		if err != nil {
			return nil, fmt.Errorf("encoding object: %w", bundles.Problems{{
				File: c.Origin.String(), Package: c.Package, Message: err.Error(), Remedy: "correct the object",
			}})
		}
		out.custom = append(out.custom, encodedCustom{schema: c.Schema, pkg: c.Package, message: message})
	}
	return out, nil
}

// encodeStruct encodes a JSON object as google.protobuf.Struct.
func encodeStruct(blob []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(blob))
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("decoding object: %w", err)
	}
	message, err := structpb.NewStruct(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding object: %w", err)
	}
	return marshal(message)
}
