package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
)

// Source is a catalog, or a part of one, that can be read package by package. It is safe for
// concurrent use.
type Source interface {
	// Packages returns the names of all packages of objects, in byte order. An empty name stands
	// for objects without a package.
	Packages() []string
	// Package returns the objects of a package; none for an unknown one. The caller may change them.
	Package(ctx context.Context, name string) (*declcfg.DeclarativeConfig, error)
}

// Directory is a catalog in files. Close it after use.
type Directory struct {
	reader *fbc.Reader
	names  []string
	// path is the path of the directory; empty for files that are not the user's, such as files of an image.
	path string
}

// OpenDirectory finds the objects of the catalog below root. The error is [bundles.Problems]
// when the files cannot be read as a catalog.
func OpenDirectory(ctx context.Context, root fs.FS) (*Directory, error) {
	reader, err := fbc.Open(ctx, root, fbc.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	if err := reader.Problems().OrNil(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the catalog: %w", err), reader.Close())
	}
	return &Directory{reader: reader, names: reader.Packages()}, nil
}

// Close releases the resources of the catalog.
func (d *Directory) Close() error {
	if err := d.reader.Close(); err != nil {
		return fmt.Errorf("closing the catalog: %w", err)
	}
	return nil
}

// Packages returns the names of the packages.
func (d *Directory) Packages() []string { return slices.Clone(d.names) }

// Package reads the objects of a package. The error is [bundles.Problems] when objects cannot
// be decoded.
func (d *Directory) Package(ctx context.Context, name string) (*declcfg.DeclarativeConfig, error) {
	return d.Some(ctx, name, nil)
}

// Some reads the objects of a package for which keep returns true; a nil keep selects all. It does
// not decode the other objects.
func (d *Directory) Some(ctx context.Context, name string, keep func(schema, name string) bool) (*declcfg.DeclarativeConfig, error) {
	objects, err := d.reader.Objects(ctx, name, keep)
	if err != nil {
		return nil, d.Located(fmt.Errorf("reading package %q: %w", name, err))
	}
	cfg, err := Decode(objects)
	return cfg, d.Located(err)
}

// Located adds the path of the directory to the file names in an error of reading the catalog, if
// the error is [bundles.Problems]. Errors of the catalog's [Directory.Reader] lack this path.
func (d *Directory) Located(err error) error {
	if problems, ok := errors.AsType[bundles.Problems](err); ok && d.path != "" {
		return problems.Below(d.path)
	}
	return err
}

// Decode returns the objects as types of declcfg. The error is [bundles.Problems].
func Decode(objects []fbc.Object) (*declcfg.DeclarativeConfig, error) {
	var (
		cfg      declcfg.DeclarativeConfig
		problems bundles.Problems
	)
	for i := range objects {
		if err := decode(&objects[i], &cfg); err != nil {
			problems = append(problems, problem(&objects[i], err))
		}
	}
	return &cfg, problems.OrNil()
}

func decode(o *fbc.Object, cfg *declcfg.DeclarativeConfig) error {
	switch o.Schema {
	case declcfg.SchemaPackage:
		return appendTo(&cfg.Packages, o.JSON)
	case declcfg.SchemaChannel:
		return appendTo(&cfg.Channels, o.JSON)
	case declcfg.SchemaBundle:
		return appendTo(&cfg.Bundles, o.JSON)
	case declcfg.SchemaDeprecation:
		return appendTo(&cfg.Deprecations, o.JSON)
	default:
		cfg.Others = append(cfg.Others, declcfg.Meta{Schema: o.Schema, Package: o.Package, Name: o.Name, Blob: o.JSON})
		return nil
	}
}

func appendTo[T any](to *[]T, text json.RawMessage) error {
	var object T
	if err := json.Unmarshal(text, &object); err != nil {
		return bundles.DescribeJSON(err) //nolint:wrapcheck // the problem names the object
	}
	*to = append(*to, object)
	return nil
}

// problem returns the problem of an object that cannot be decoded.
func problem(o *fbc.Object, err error) bundles.Problem {
	p := bundles.Problem{
		File: o.Origin.String(), Package: o.Package, Message: err.Error(), Remedy: "correct the " + o.Schema + " object",
	}
	switch o.Schema {
	case declcfg.SchemaPackage:
		p.Package = o.Name
	case declcfg.SchemaChannel:
		p.Channel = o.Name
	case declcfg.SchemaBundle:
		p.Bundle = o.Name
	}
	return p
}

// Memory is a catalog in memory.
type Memory struct {
	byPackage map[string]*declcfg.DeclarativeConfig
}

// NewMemory returns a source of the objects.
func NewMemory(cfg *declcfg.DeclarativeConfig) *Memory {
	m := &Memory{byPackage: map[string]*declcfg.DeclarativeConfig{}}
	for i := range cfg.Packages {
		of := m.of(cfg.Packages[i].Name)
		of.Packages = append(of.Packages, cfg.Packages[i])
	}
	for i := range cfg.Channels {
		of := m.of(cfg.Channels[i].Package)
		of.Channels = append(of.Channels, cfg.Channels[i])
	}
	for i := range cfg.Bundles {
		of := m.of(cfg.Bundles[i].Package)
		of.Bundles = append(of.Bundles, cfg.Bundles[i])
	}
	for i := range cfg.Deprecations {
		of := m.of(cfg.Deprecations[i].Package)
		of.Deprecations = append(of.Deprecations, cfg.Deprecations[i])
	}
	for i := range cfg.Others {
		of := m.of(cfg.Others[i].Package)
		of.Others = append(of.Others, cfg.Others[i])
	}
	return m
}

func (m *Memory) of(name string) *declcfg.DeclarativeConfig {
	if m.byPackage[name] == nil {
		m.byPackage[name] = &declcfg.DeclarativeConfig{}
	}
	return m.byPackage[name]
}

// Packages returns the names of the packages.
func (m *Memory) Packages() []string { return slices.Sorted(maps.Keys(m.byPackage)) }

// Package returns the objects of a package.
func (m *Memory) Package(_ context.Context, name string) (*declcfg.DeclarativeConfig, error) {
	of := m.byPackage[name]
	if of == nil {
		return &declcfg.DeclarativeConfig{}, nil
	}
	return &declcfg.DeclarativeConfig{
		Packages: slices.Clone(of.Packages), Channels: slices.Clone(of.Channels), Bundles: slices.Clone(of.Bundles),
		Deprecations: slices.Clone(of.Deprecations), Others: slices.Clone(of.Others),
	}, nil
}

// Joined returns the objects of several sources, those of the first source first.
func Joined(sources ...Source) Source {
	if len(sources) == 1 {
		return sources[0]
	}
	return joined(sources)
}

type joined []Source

// Packages returns the names of the packages of all sources.
func (j joined) Packages() []string {
	var names []string
	for _, source := range j {
		names = append(names, source.Packages()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Package returns the objects of a package in all sources.
func (j joined) Package(ctx context.Context, name string) (*declcfg.DeclarativeConfig, error) {
	var cfg declcfg.DeclarativeConfig
	for _, source := range j {
		part, err := source.Package(ctx, name)
		if err != nil {
			return nil, err
		}
		cfg.Merge(part)
	}
	return &cfg, nil
}

// Changed returns a source whose packages are passed to a function, which may change them.
func Changed(source Source, change func(*declcfg.DeclarativeConfig) error) Source {
	return changed{source, change}
}

type changed struct {
	Source

	change func(*declcfg.DeclarativeConfig) error
}

// Package returns the changed objects of a package.
func (c changed) Package(ctx context.Context, name string) (*declcfg.DeclarativeConfig, error) {
	cfg, err := c.Source.Package(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := c.change(cfg); err != nil {
		return nil, fmt.Errorf("package %q: %w", name, err)
	}
	return cfg, nil
}

// All returns everything that a source holds, in the order of [Write].
func All(ctx context.Context, source Source) (*declcfg.DeclarativeConfig, error) {
	var all declcfg.DeclarativeConfig
	for _, name := range inOrder(source.Packages()) {
		part, err := source.Package(ctx, name)
		if err != nil {
			return nil, err
		}
		arrange(part)
		all.Merge(part)
	}
	return &all, nil
}

// Reader returns the reader of the catalog.
func (d *Directory) Reader() *fbc.Reader { return d.reader }
