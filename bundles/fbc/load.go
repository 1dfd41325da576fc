package fbc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles"
)

// Load reads the catalog below root. Files are decoded in parallel; the result
// does not depend on the order in which that happens.
//
// The error is [bundles.Problems] with everything that keeps files from being
// read as objects of a catalog, or wraps the cause of ctx. With problems comes
// the catalog of what could be read, in which packages that they may affect are
// marked as incomplete: validate it to find everything else that is wrong. A directory without
// files is a catalog without packages. Load does not judge what the objects
// say: call [bundles.Catalog.Validate] for that.
func Load(ctx context.Context, root fs.FS, options Options) (*bundles.Catalog, error) {
	files, err := Files(root)
	unlisted := bundles.Problems(nil)
	if err != nil && !errors.As(err, &unlisted) {
		return nil, err
	}
	l := &loader{root: root, options: options.withDefaults()}
	loaded := make([]loadedFile, len(files)+1)
	// The last one stands for what could not be listed.
	loaded[len(files)] = loadedFile{problems: unlisted, gaps: gaps{anything: len(unlisted) > 0}}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.options.Concurrency)
	for i, name := range files {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("loading catalog: %w", err)
			}
			loaded[i] = l.file(name)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return assemble(loaded)
}

// loader carries what the parallel readers of one catalog share.
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

// loadedFile is what one file contributes.
type loadedFile struct {
	objects  []object
	problems bundles.Problems
	gaps     gaps
}

// gaps tell what may be missing because it could not be read.
type gaps struct {
	// anything says that it is not known what.
	anything bool
	// packages and declarations name the packages of which objects are missing,
	// and those whose olm.package objects are.
	packages, declarations []string
}

// add notes an object that could not be decoded.
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

func (l *loader) file(name string) loadedFile {
	var out loadedFile
	if info, err := fs.Stat(l.root, name); err == nil && info.Size() > largeBytes {
		l.large.Lock()
		defer l.large.Unlock()
	}
	data, err := readFile(l.root, name, l.options.MaxFileBytes)
	if err != nil {
		out.problems, out.gaps.anything = bundles.Problems{unreadable(name, err)}, true
		return out
	}
	if l.bytes.Add(int64(len(data))) > l.options.MaxTotalBytes {
		out.problems = bundles.Problems{tooMany(name, fmt.Errorf("%w: more than %d bytes", errTooMany, l.options.MaxTotalBytes))}
		out.gaps.anything = true
		return out
	}
	err = documents(data, func(d document) error {
		if l.documents.Add(1) > l.options.MaxDocuments {
			return fmt.Errorf("%w: more than %d objects", errTooMany, l.options.MaxDocuments)
		}
		origin := bundles.Origin{File: name, Line: d.line}
		decoded, head, problem := decode(d, origin, l.options.MaxDepth)
		if problem != nil {
			out.gaps.add(head)
			problem.File = origin.String()
			out.problems = append(out.problems, *problem)
			return nil
		}
		out.objects = append(out.objects, decoded)
		return nil
	})
	if err != nil {
		out.gaps.anything = true
	}
	var syntax *syntaxError
	switch {
	case errors.As(err, &syntax):
		out.problems = append(out.problems, bundles.Problem{
			File: bundles.Origin{File: name, Line: syntax.line}.String(), Message: syntax.Error(),
			Remedy: "correct it, or exclude the file by an .indexignore file if it is not part of the catalog",
		})
	case err != nil:
		out.problems = append(out.problems, tooMany(name, err))
	}
	return out
}

func tooMany(name string, err error) bundles.Problem {
	return bundles.Problem{File: name, Message: err.Error(), Remedy: "serve fewer packages, or raise the limit"}
}

// merge adds what may be missing elsewhere.
func (g *gaps) merge(other gaps) {
	g.anything = g.anything || other.anything
	g.packages = append(g.packages, other.packages...)
	g.declarations = append(g.declarations, other.declarations...)
}

// affect tells whether objects of a package may be missing.
func (g *gaps) affect(name string) bool {
	return g.anything || slices.Contains(g.packages, name) || slices.Contains(g.declarations, name)
}

// assemble hands every object to its package.
func assemble(files []loadedFile) (*bundles.Catalog, error) {
	var (
		catalog  bundles.Catalog
		problems bundles.Problems
		missing  gaps
		packages = make(map[string]*bundles.Package)
	)
	for i := range files {
		problems = append(problems, files[i].problems...)
		missing.merge(files[i].gaps)
		for _, o := range files[i].objects {
			if o.pkg == nil {
				continue
			}
			catalog.Packages = append(catalog.Packages, o.pkg)
			// Of two packages with one name the first gets the content; that
			// there are two is for Validate to say.
			if packages[o.pkg.Name] == nil {
				packages[o.pkg.Name] = o.pkg
			}
		}
	}
	for _, name := range undeclared(files, packages, missing) {
		packages[name] = &bundles.Package{Name: name}
		catalog.Packages = append(catalog.Packages, packages[name])
	}
	for i := range files {
		for _, o := range files[i].objects {
			adopt(&catalog, packages, o)
		}
	}
	for _, p := range catalog.Packages {
		p.Incomplete = missing.affect(p.Name)
	}
	sortCatalog(&catalog)
	return &catalog, problems.OrNil()
}

// undeclared names the packages whose olm.package objects may be among what is
// missing, each once.
func undeclared(files []loadedFile, packages map[string]*bundles.Package, missing gaps) []string {
	names := slices.Clone(missing.declarations)
	if missing.anything {
		for i := range files {
			for _, o := range files[i].objects {
				names = append(names, o.packageName())
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" || packages[name] != nil })
	slices.Sort(names)
	return slices.Compact(names)
}

// sortCatalog brings packages, channels and bundles into the order of their
// names.
func sortCatalog(catalog *bundles.Catalog) {
	slices.SortStableFunc(catalog.Packages, func(a, b *bundles.Package) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range catalog.Packages {
		slices.SortStableFunc(p.Channels, func(a, b *bundles.Channel) int { return cmp.Compare(a.Name, b.Name) })
		slices.SortStableFunc(p.Bundles, func(a, b *bundles.Bundle) int { return cmp.Compare(a.Name, b.Name) })
	}
}

func adopt(catalog *bundles.Catalog, packages map[string]*bundles.Package, o object) {
	stray := func(schema, pkg, name string, origin bundles.Origin) {
		catalog.Strays = append(catalog.Strays, bundles.Stray{Schema: schema, Package: pkg, Name: name, Origin: origin})
	}
	switch {
	case o.channel != nil:
		if p := packages[o.channel.Package]; p != nil {
			p.Channels = append(p.Channels, o.channel)
			return
		}
		stray(bundles.SchemaChannel, o.channel.Package, o.channel.Name, o.channel.Origin)
	case o.bundle != nil:
		if p := packages[o.bundle.Package]; p != nil {
			p.Bundles = append(p.Bundles, o.bundle)
			return
		}
		stray(bundles.SchemaBundle, o.bundle.Package, o.bundle.Name, o.bundle.Origin)
	case o.deprecations != nil:
		if p := packages[o.deprecations.pkg]; p != nil {
			p.Deprecations = append(p.Deprecations, o.deprecations.list)
			return
		}
		stray(bundles.SchemaDeprecations, o.deprecations.pkg, "", o.deprecations.list.Origin)
	case o.custom != nil:
		catalog.Custom = append(catalog.Custom, *o.custom)
	}
}
