package buildcache

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Module is a helper module with the programs and files to take from it.
type Module struct {
	// Name is the folder of the module below the cache root: one path element.
	Name string
	// Dir is the folder that holds the module's go.mod and go.sum.
	Dir string
	// Programs are the programs, built in this order.
	Programs []Program
	// Files are the files to copy from required modules.
	Files []File
	// Tags are the build tags of every program.
	Tags []string
	// Cgo builds with cgo, which needs a C compiler.
	Cgo bool
}

// Program is one main package.
type Program struct {
	// Name is the file name of the binary.
	Name string
	// Package is the import path of the main package.
	Package string
	// LDFlags go to the linker, after the flags that strip symbols.
	LDFlags string
	// Links are further names of the binary.
	Links []string `json:",omitempty"`
}

// File is one file of a required module.
type File struct {
	// Name is the slash-separated path of the copy below the directory of the binaries.
	Name string
	// Module is the path of the module of the file.
	Module string
	// Path is the slash-separated path inside that module.
	Path string
}

// ErrInvalidModule is wrapped by the errors of a Module that cannot be built as described.
var ErrInvalidModule = errors.New("invalid helper module")

// validate checks that no name in m leaves its folder or looks like a flag.
func (m Module) validate() error {
	if !element(m.Name) {
		return fmt.Errorf("%w: name %q must be one path element", ErrInvalidModule, m.Name)
	}

	seen := map[string]bool{}

	for _, p := range m.Programs {
		err := p.validate(seen)
		if err != nil {
			return fmt.Errorf("%w %s: program %w", ErrInvalidModule, m.Name, err)
		}
	}

	for _, f := range m.Files {
		err := f.validate(seen)
		if err != nil {
			return fmt.Errorf("%w %s: file %w", ErrInvalidModule, m.Name, err)
		}
	}

	return nil
}

// validate checks p and adds its name to seen.
func (p Program) validate(seen map[string]bool) error {
	if p.Package == "" || strings.HasPrefix(p.Package, "-") {
		return fmt.Errorf("%q: package %q must be an import path", p.Name, p.Package)
	}

	for _, name := range append([]string{p.Name}, p.Links...) {
		if !element(name) || strings.HasPrefix(name, ".") {
			return fmt.Errorf("%q: the name must be one path element without a leading dot", name)
		}

		err := add(seen, name)
		if err != nil {
			return err
		}
	}

	return nil
}

// validate checks f and adds its name to seen.
func (f File) validate(seen map[string]bool) error {
	if !filepath.IsLocal(filepath.FromSlash(f.Name)) || !filepath.IsLocal(filepath.FromSlash(f.Path)) {
		return fmt.Errorf("%q (%q of %s): both paths must stay inside their folders", f.Name, f.Path, f.Module)
	}

	return add(seen, f.Name)
}

func add(seen map[string]bool, name string) error {
	if seen[name] {
		return fmt.Errorf("%q: the name is taken: give it another", name)
	}

	seen[name] = true

	return nil
}

// element reports whether name is the name of one file or folder.
func element(name string) bool {
	return name != "" && name == filepath.Base(name) && filepath.IsLocal(name)
}
