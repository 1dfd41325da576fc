package edit

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/catalogfile"
	"github.com/chandlery/chandlery/bundles/fbc"
)

// Files holds the files of one package, or one template.
type Files struct {
	pkg     string
	files   map[string]*catalogfile.File
	changed map[string]bool
}

// NewFiles parses the files of a package. texts maps file names to texts. The error is [bundles.Problems].
func NewFiles(pkg string, texts map[string][]byte) (*Files, error) {
	f := &Files{pkg: pkg, files: map[string]*catalogfile.File{}, changed: map[string]bool{}}
	var problems bundles.Problems
	for name, text := range texts {
		file, err := catalogfile.Parse(text)
		if wrong, ok := errors.AsType[*catalogfile.SyntaxError](err); ok {
			problems = append(problems, bundles.Problem{
				File: bundles.Origin{File: name, Line: wrong.Line}.String(), Message: wrong.Error(), Remedy: "correct the file",
			})
			continue
		}
		f.files[name] = file
	}
	return f, problems.OrNil()
}

// Changed returns the texts of the files that have changed, by their names.
func (f *Files) Changed() map[string][]byte {
	texts := map[string][]byte{}
	for name := range f.changed {
		texts[name] = f.files[name].Text()
	}
	return texts
}

// Template returns the name and the schema of the template that the files consist of; empty
// when they are files of a catalog.
func (f *Files) Template() (name, schema string) {
	for name, file := range f.files {
		if schema := file.Template(); schema != "" {
			return name, schema
		}
	}
	return "", ""
}

// place is an object in a file.
type place struct {
	catalogfile.Object

	file string
}

// origin returns the position of the object, for messages.
func (p *place) origin() string { return bundles.Origin{File: p.file, Line: p.Line}.String() }

// objects returns the objects of the package, file by file.
func (f *Files) objects() []place {
	var found []place
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		for _, object := range f.files[name].Objects() {
			of := object.Package
			if object.Schema == declcfg.SchemaPackage {
				of = object.Name
			}
			if of == f.pkg {
				found = append(found, place{object, name})
			}
		}
	}
	return found
}

// find returns the object of a schema and a name; an empty name stands for any.
func (f *Files) find(schema, name string) (place, bool) {
	for _, at := range f.objects() {
		if at.Schema == schema && (name == "" || at.Name == name) {
			return at, true
		}
	}
	return place{}, false
}

// Package returns the objects of the package.
func (f *Files) Package() (*declcfg.DeclarativeConfig, error) {
	var (
		cfg      declcfg.DeclarativeConfig
		problems bundles.Problems
	)
	for _, at := range f.objects() {
		if err := decode(&at, &cfg); err != nil {
			problems = append(problems, bundles.Problem{
				File: at.origin(), Package: f.pkg, Message: err.Error(), Remedy: "correct the " + at.Schema + " object",
			})
		}
	}
	return &cfg, problems.OrNil()
}

func decode(at *place, cfg *declcfg.DeclarativeConfig) error {
	switch at.Schema {
	case declcfg.SchemaPackage:
		return appendTo(&cfg.Packages, at)
	case declcfg.SchemaChannel:
		return appendTo(&cfg.Channels, at)
	case declcfg.SchemaBundle:
		return appendTo(&cfg.Bundles, at)
	case declcfg.SchemaDeprecation:
		return appendTo(&cfg.Deprecations, at)
	}
	return nil
}

func appendTo[T any](to *[]T, at *place) error {
	var object T
	if err := at.Decode(&object); err != nil {
		return err
	}
	*to = append(*to, object)
	return nil
}

// appendTo adds an element to a list of an object.
func (f *Files) appendTo(at *place, field string, value any) error {
	file, err := f.files[at.file].Append(at.Document, at.Path.Then(catalogfile.Field(field)), value)
	return f.put(at.file, file, err)
}

// set replaces the value at a path in an object.
func (f *Files) set(at *place, within catalogfile.Path, value any) error {
	file, err := f.files[at.file].Set(at.Document, at.Path.Then(within...), value)
	return f.put(at.file, file, err)
}

// add adds an object to a file, or to the entries of a template. It creates a missing file in the
// format of another.
func (f *Files) add(name, like string, value any) error {
	file := f.files[name]
	if file == nil {
		file = catalogfile.New(f.files[like].IsJSON())
	}
	var err error
	if file.Template() != "" {
		file, err = file.Append(0, catalogfile.Fields("entries"), value)
	} else {
		file, err = file.AddDocument(value)
	}
	return f.put(name, file, err)
}

func (f *Files) put(name string, file *catalogfile.File, err error) error {
	if err != nil {
		return bundles.Problems{{
			File: name, Package: f.pkg, Message: err.Error(), Remedy: "write the lists of the file in block style, and without aliases",
		}}
	}
	f.files[name] = file
	f.changed[name] = true
	return nil
}

// home returns the file for further objects of a schema: the file with the last of them, else the
// file with the package.
func (f *Files) home(schema string) (string, bool) {
	home, found := "", false
	for _, at := range f.objects() {
		if at.Schema == schema || !found && at.Schema == declcfg.SchemaPackage {
			home, found = at.file, true
		}
	}
	return home, found
}

// bundleFile returns the file for a new bundle. If every bundle has its own file, the new one gets its own, too.
func (f *Files) bundleFile(name string) (file, like string) {
	count := map[string]int{}
	bundle := ""
	for _, at := range f.objects() {
		count[at.file]++
		if at.Schema == declcfg.SchemaBundle {
			bundle = at.file
		}
	}
	home, _ := f.home(declcfg.SchemaBundle)
	for _, at := range f.objects() {
		if at.Schema == declcfg.SchemaBundle && count[at.file] > 1 {
			return home, home
		}
	}
	if bundle == "" {
		return home, home
	}
	return path.Join(path.Dir(bundle), name+path.Ext(bundle)), bundle
}

// Validate returns all problems of the package in its current files.
func (f *Files) Validate(ctx context.Context) error {
	root, err := archive(f.files)
	if err != nil {
		return err
	}
	catalog, err := fbc.Load(ctx, root, fbc.Options{})
	problems, ok := errors.AsType[bundles.Problems](err)
	if err != nil && !ok {
		return fmt.Errorf("reading the changed catalog: %w", err)
	}
	problems = append(problems, bundles.AsProblems(catalog.Validate())...)
	problems = slices.DeleteFunc(problems, func(p bundles.Problem) bool { return p.Package != "" && p.Package != f.pkg })
	return problems.OrNil()
}

// archive returns the files as a file system.
func archive(files map[string]*catalogfile.File) (*zip.Reader, error) {
	var text bytes.Buffer
	w := zip.NewWriter(&text)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = file.Write(files[name].Text())
		}
		if err != nil {
			return nil, fmt.Errorf("preparing %s to be checked: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("preparing the files to be checked: %w", err)
	}
	root, err := zip.NewReader(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if err != nil {
		return nil, fmt.Errorf("preparing the files to be checked: %w", err)
	}
	return root, nil
}
