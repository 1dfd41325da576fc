package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/bundles"
)

// Source is a catalog that can be read package by package, as indexes require.
type Source interface { //nolint:interfacebloat // it is that of package index
	// Packages returns the names of all packages, in byte order. An empty name stands for objects
	// without a package.
	Packages() []string
	// Package reads the objects of one package. The error is [bundles.Problems] with what could not be read.
	Package(ctx context.Context, name string) (*bundles.Catalog, error)
	// Size returns the approximate number of bytes of a package in the catalog.
	Size(name string) int64
	// Problems returns the problems of the catalog that belong to no package.
	Problems() bundles.Problems
}

// Selected is the selected part of a catalog. It implements [Source]. It is safe for concurrent use
// if the catalog is.
type Selected struct {
	from    Source
	names   []string
	wanted  map[string]wanted
	missing bundles.Problems
	// additions are the bundles that dependencies added. unmet are the requirements that remain unmet.
	additions []Addition
	unmet     []Unmet
}

// Open selects a part of a catalog. If the selection has dependencies or installed bundles, Open
// reads packages to determine the selected ones; otherwise it reads nothing.
//
// Missing packages, and selections that a package cannot satisfy, are problems of the result: see
// [Selected.Problems] and [Selected.Package]. The error is [bundles.Problems] when packages must be
// read and cannot be, or wraps the cause of ctx.
func Open(ctx context.Context, from Source, s *Selection) (*Selected, error) {
	out := &Selected{from: from}
	out.find(s)
	if len(s.Installed) > 0 {
		if err := out.findInstalled(ctx, s); err != nil {
			return nil, err
		}
	}
	if s.Dependencies {
		if err := out.resolve(ctx); err != nil {
			return nil, err
		}
	}
	for _, name := range from.Packages() {
		if _, ok := out.wanted[name]; ok || name == "" {
			out.names = append(out.names, name)
		}
	}
	return out, nil
}

// find records the selected packages and the missing ones.
func (s *Selected) find(selection *Selection) {
	s.wanted = make(map[string]wanted)
	for _, name := range s.from.Packages() {
		if p, ok := selection.pkg(name); ok {
			p.Heads = p.Heads || selection.Heads
			s.wanted[name] = wanted{Package: p, onlyDefaultChannel: selection.OnlyDefaultChannels, named: true}
		}
	}
	for i := range selection.Packages {
		name := selection.Packages[i].Name
		if _, ok := s.wanted[name]; !ok {
			s.missing = append(s.missing, bundles.Problem{
				Package: name, Message: "the selection: the catalog has no such package", Remedy: "correct the name, or remove the package from the selection",
			})
		}
	}
}

// findInstalled records the installed bundles of each selected package. It removes packages without
// any, unless the selection names packages.
func (s *Selected) findInstalled(ctx context.Context, selection *Selection) error {
	for _, name := range s.from.Packages() {
		w, ok := s.wanted[name]
		if !ok {
			continue
		}
		p, err := s.read(ctx, name)
		if err != nil {
			return err
		}
		if w.installed = installedOf(p, selection.Installed); len(w.installed) > 0 || len(selection.Packages) > 0 {
			s.wanted[name] = w
		} else {
			delete(s.wanted, name)
		}
	}
	return nil
}

// installedOf returns the installed names that occur in a package: names of its entries, and of
// bundles that they replace or skip.
func installedOf(p *bundles.Package, installed []string) []string {
	if p == nil {
		return nil
	}
	known := make(map[string]bool)
	for _, ch := range p.Channels {
		for i := range ch.Entries {
			known[ch.Entries[i].Name], known[ch.Entries[i].Replaces] = true, true
			for _, skipped := range ch.Entries[i].Skips {
				known[skipped] = true
			}
		}
	}
	var out []string
	for _, name := range installed {
		if name != "" && known[name] {
			out = append(out, name)
		}
	}
	return out
}

// read reads a package, which must be valid; it returns nil if the catalog does not declare the package.
func (s *Selected) read(ctx context.Context, name string) (*bundles.Package, error) {
	part, err := s.part(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(part.Packages) == 0 {
		return nil, nil //nolint:nilnil // that is the answer
	}
	return part.Packages[0], nil
}

// part reads the objects of a package and checks them.
func (s *Selected) part(ctx context.Context, name string) (*bundles.Catalog, error) {
	part, err := s.from.Package(ctx, name)
	var problems bundles.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, fmt.Errorf("reading package %s: %w", bundles.Quote(name), err)
	}
	problems = append(problems, bundles.AsProblems(part.Validate())...)
	return part, problems.OrNil()
}

// Packages implements [Source].
func (s *Selected) Packages() []string { return slices.Clone(s.names) }

// Package implements [Source]. It returns the kept part of a package.
func (s *Selected) Package(ctx context.Context, name string) (*bundles.Catalog, error) {
	w, ok := s.wanted[name]
	if !ok && name != "" {
		return &bundles.Catalog{}, nil
	}
	part, err := s.part(ctx, name)
	if err != nil || len(part.Packages) == 0 {
		return part, err
	}
	kept, err := choose(part.Packages[0], w)
	if err != nil {
		return &bundles.Catalog{}, err
	}
	out := *part
	out.Packages = []*bundles.Package{kept.Apply(part.Packages[0])}
	return &out, nil
}

// Kept returns the kept part of a valid package, which may come from another reader. The error is
// [bundles.Problems] with the reasons that prevent the selection.
func (s *Selected) Kept(p *bundles.Package) (*Kept, error) {
	w, ok := s.wanted[p.Name]
	if !ok {
		return &Kept{Package: p.Name}, nil
	}
	return choose(p, w)
}

// Size implements [Source].
func (s *Selected) Size(name string) int64 { return s.from.Size(name) }

// Problems implements [Source]. It returns the problems of the whole catalog and the missing packages.
func (s *Selected) Problems() bundles.Problems { return slices.Concat(s.from.Problems(), s.missing) }

// Additions returns the bundles that are kept because others require them, in the
// order in which they were found.
func (s *Selected) Additions() []Addition { return slices.Clone(s.additions) }

// Unmet returns the requirements of kept bundles that the selection does not meet. Other catalogs
// or clusters may meet them.
func (s *Selected) Unmet() []Unmet { return slices.Clone(s.unmet) }
