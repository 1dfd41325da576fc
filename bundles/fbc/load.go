package fbc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles"
)

// Load reads the catalog below root. Files are decoded in parallel, which does not affect the result.
//
// The error is [bundles.Problems] with everything that prevents files from being read as objects of
// a catalog, or wraps the cause of ctx. With problems, Load also returns the catalog of what could
// be read. It marks packages that the problems may affect as incomplete. Validate this catalog to
// find all other problems. A directory without files is a catalog without packages. Load does not
// validate the objects: call [bundles.Catalog.Validate] for that.
func Load(ctx context.Context, root fs.FS, options Options) (*bundles.Catalog, error) {
	r, err := Open(ctx, root, options)
	if err != nil {
		return nil, err
	}
	parts := make([]*part, len(r.names))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(r.options.Concurrency)
	for i, name := range r.names {
		group.Go(func() error {
			var err error
			parts[i], err = r.part(groupCtx, name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return merge(r, parts)
}

// merge merges the parts of a catalog. Parts come in the order of their names.
func merge(r *Reader, parts []*part) (*bundles.Catalog, error) {
	var (
		catalog        bundles.Catalog
		strays, custom []int
	)
	problems := r.Problems()
	for _, p := range parts {
		problems = append(problems, p.problems...)
		catalog.Packages = append(catalog.Packages, p.catalog.Packages...)
		catalog.Strays = append(catalog.Strays, p.catalog.Strays...)
		strays = append(strays, p.strays...)
		catalog.Custom = append(catalog.Custom, p.catalog.Custom...)
		custom = append(custom, p.custom...)
	}
	catalog.Strays = inOrder(catalog.Strays, strays)
	catalog.Custom = inOrder(catalog.Custom, custom)
	return &catalog, problems.OrNil()
}

// inOrder sorts elements by their places.
func inOrder[T any](elements []T, places []int) []T {
	order := make([]int, len(elements))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(places[a], places[b]) })
	var out []T
	for _, i := range order {
		out = append(out, elements[i])
	}
	return out
}

// loader is the state that the parallel readers of one catalog share.
type loader struct {
	root      fs.FS
	options   Options
	bytes     atomic.Int64
	documents atomic.Int64
	// large is held while a large file is decoded, which takes many times its
	// size.
	large sync.Mutex
}

// largeBytes is the size from which on files are decoded one at a time.
const largeBytes = 64 << 20

// foundFile is the content of one file.
type foundFile struct {
	info     fileInfo
	records  []record
	problems bundles.Problems
	gaps     gaps
}

// gaps are what may be missing because it could not be read.
type gaps struct {
	// anything is set if it is unknown what is missing.
	anything bool
	// packages are the packages with missing objects. declarations are the packages whose
	// olm.package objects are missing.
	packages, declarations []string
}

// add records an object that could not be decoded.
func (g *gaps) add(head header) {
	switch {
	case head.schema == bundles.SchemaPackage && head.name != "":
		g.declarations = append(g.declarations, head.name)
	case head.schema != "" && head.pkg != "":
		g.packages = append(g.packages, head.pkg)
	default:
		g.anything = true
	}
}

var errTooMany = errors.New("the catalog is too large")

// file finds the objects of a file.
func (l *loader) file(scanner *jsonScanner, name string) foundFile {
	out, err := l.plain(scanner, name)
	if errors.Is(err, errPeculiar) {
		out, err = l.peculiar(name)
	}
	if err != nil {
		out.problems = append(out.problems, describe(name, err))
		out.gaps.anything = true
	}
	return out
}

// describe returns the problem of a file that could not be read to its end.
func describe(name string, err error) bundles.Problem {
	syntax, wrong := errors.AsType[*syntaxError](err)
	switch {
	case wrong:
		return bundles.Problem{
			File: bundles.Origin{File: name, Line: syntax.line}.String(), Message: syntax.Error(),
			Remedy: "correct it, or exclude the file by an .indexignore file if it is not part of the catalog",
		}
	case errors.Is(err, errTooMany):
		return bundles.Problem{File: name, Message: err.Error(), Remedy: "serve fewer packages, or raise the limit"}
	default:
		return unreadable(name, err)
	}
}

// plain finds the objects of a file that is a stream of plain JSON objects.
func (l *loader) plain(scanner *jsonScanner, name string) (foundFile, error) {
	file, info, err := openFile(l.root, name, l.options.MaxFileBytes)
	if err != nil {
		return foundFile{}, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	out := foundFile{info: fileInfo{name: name, size: info.Size(), changed: info.ModTime()}}
	if err := l.count(info.Size()); err != nil {
		return foundFile{}, err
	}
	// If the file has grown since its size was read, it is not plain.
	var added int64
	err = scanner.scan(io.LimitReader(file, info.Size()+1), info.Size(), func(r record) error {
		if r.offset+r.size > info.Size() {
			return errPeculiar
		}
		added++
		return l.add(&out, r, scanner.current)
	})
	if errors.Is(err, errPeculiar) {
		l.bytes.Add(-info.Size())
		l.documents.Add(-added)
	}
	return out, err
}

// count adds a file's size to the size of the catalog.
func (l *loader) count(size int64) error {
	if l.bytes.Add(size) > l.options.MaxTotalBytes {
		return fmt.Errorf("%w: more than %d bytes", errTooMany, l.options.MaxTotalBytes)
	}
	return nil
}

// add records an object or the problem of its header.
func (l *loader) add(out *foundFile, r record, fields func() (map[string]any, error)) error {
	if l.documents.Add(1) > l.options.MaxDocuments {
		return l.tooManyObjects()
	}
	problem := r.check()
	if !r.identified {
		fields, err := fields()
		if err != nil {
			return err
		}
		r.header, problem = identify(fields)
	}
	if problem == nil {
		out.records = append(out.records, r)
		return nil
	}
	out.gaps.add(r.header)
	problem.File = bundles.Origin{File: out.info.name, Line: r.line}.String()
	out.problems = append(out.problems, *problem)
	return nil
}

// peculiar finds the objects of any file by decoding the file.
func (l *loader) peculiar(name string) (foundFile, error) {
	info, err := fs.Stat(l.root, name)
	if err != nil {
		return foundFile{}, fmt.Errorf("looking at file: %w", err)
	}
	if info.Size() > largeBytes {
		l.large.Lock()
		defer l.large.Unlock()
	}
	data, err := readFile(l.root, name, l.options.MaxFileBytes)
	if err != nil {
		return foundFile{}, err
	}
	out := foundFile{info: fileInfo{name: name, size: info.Size(), changed: info.ModTime()}}
	if err := l.count(int64(len(data))); err != nil {
		return out, err
	}
	err = documents(data, func(d document) error {
		r := record{form: formJSON, line: d.line, offset: int64(d.offset), size: int64(d.size)}
		if d.yaml {
			r.form = formYAML
		}
		if d.json != nil {
			quick := jsonScanner{options: l.options, buffer: d.json}
			if found, end := quick.header(0); end == len(d.json) && found.form == formPlain {
				r.header, r.identified = found.header, true
			}
		}
		return l.add(&out, r, d.decoded)
	})
	return out, err
}

// tooManyObjects is the error of the first object beyond the limit.
func (l *loader) tooManyObjects() error {
	return fmt.Errorf("%w: more than %d objects", errTooMany, l.options.MaxDocuments)
}

// merge adds what may be missing elsewhere.
func (g *gaps) merge(other gaps) {
	g.anything = g.anything || other.anything
	g.packages = append(g.packages, other.packages...)
	g.declarations = append(g.declarations, other.declarations...)
}

// affect reports whether objects of a package may be missing.
func (g *gaps) affect(name string) bool {
	return g.anything || slices.Contains(g.packages, name) || slices.Contains(g.declarations, name)
}

// assemble assigns every object to the package of a name. at has the places of the objects.
func (p *part) assemble(name string, objects []object, at []int, elsewhere gaps) {
	for _, o := range objects {
		if o.pkg != nil {
			p.catalog.Packages = append(p.catalog.Packages, o.pkg)
		}
	}
	if len(p.catalog.Packages) == 0 && p.undeclared(name, objects, elsewhere) {
		p.catalog.Packages = []*bundles.Package{{Name: name}}
	}
	// Of two packages with one name the first gets the content. Validate reports the second one.
	var owner *bundles.Package
	if len(p.catalog.Packages) > 0 {
		owner = p.catalog.Packages[0]
	}
	for i, o := range objects {
		if o.custom != nil {
			p.catalog.Custom = append(p.catalog.Custom, *o.custom)
			p.custom = append(p.custom, at[i])
			continue
		}
		if o.pkg == nil && owner == nil {
			p.catalog.Strays = append(p.catalog.Strays, o.stray())
			p.strays = append(p.strays, at[i])
			continue
		}
		adopt(owner, o)
	}
	for _, declared := range p.catalog.Packages {
		declared.Incomplete = elsewhere.affect(name) || p.gaps.affect(name)
	}
	sortCatalog(&p.catalog)
}

// undeclared reports whether the olm.package object of a name may be among what is missing.
func (p *part) undeclared(name string, objects []object, elsewhere gaps) bool {
	if name == "" {
		return false
	}
	if slices.Contains(p.gaps.declarations, name) {
		return true
	}
	belongs := func(o object) bool { return o.custom == nil }
	return elsewhere.anything && slices.ContainsFunc(objects, belongs)
}

// sortCatalog sorts packages, channels and bundles by name.
func sortCatalog(catalog *bundles.Catalog) {
	slices.SortStableFunc(catalog.Packages, func(a, b *bundles.Package) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range catalog.Packages {
		slices.SortStableFunc(p.Channels, func(a, b *bundles.Channel) int { return cmp.Compare(a.Name, b.Name) })
		slices.SortStableFunc(p.Bundles, func(a, b *bundles.Bundle) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// adopt adds an object to its package.
func adopt(p *bundles.Package, o object) {
	switch {
	case o.channel != nil:
		p.Channels = append(p.Channels, o.channel)
	case o.bundle != nil:
		p.Bundles = append(p.Bundles, o.bundle)
	case o.deprecations != nil:
		p.Deprecations = append(p.Deprecations, o.deprecations.list)
	}
}

// stray returns an object whose package is not declared as a stray.
func (o object) stray() bundles.Stray {
	switch {
	case o.channel != nil:
		return bundles.Stray{Schema: bundles.SchemaChannel, Package: o.channel.Package, Name: o.channel.Name, Origin: o.channel.Origin}
	case o.bundle != nil:
		return bundles.Stray{Schema: bundles.SchemaBundle, Package: o.bundle.Package, Name: o.bundle.Name, Origin: o.bundle.Origin}
	default:
		return bundles.Stray{Schema: bundles.SchemaDeprecations, Package: o.deprecations.pkg, Origin: o.deprecations.list.Origin}
	}
}
