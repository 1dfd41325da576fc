package catalogfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"
)

// File is the text of a catalog file or of a template. It is a value: changes return another
// File.
type File struct {
	text      []byte
	isJSON    bool
	documents []document
}

// document is the position of a document in a file.
type document struct {
	// begin and end are offsets in the text.
	begin, end int
	// line is the first line, from one.
	line int
	// value is the decoded document.
	value any
}

// Object is an object of a catalog in a file.
type Object struct {
	// Document is the index of the document in the file. Path is the path of the object in the document.
	Document int
	Path     Path
	// Line is the line at which the document begins, from one.
	Line int
	// Schema, Package and Name are fields of the object.
	Schema, Package, Name string
	// Fields is the decoded object.
	Fields map[string]any
}

// The schemas of templates.
const (
	SchemaBasic       = "olm.template.basic"
	SchemaSubstitutes = "olm.template.substitutes"
	SchemaSemver      = "olm.semver"
)

// SyntaxError is the error of a text that cannot be decoded.
type SyntaxError struct {
	// Line is the line of the document that cannot be decoded, from one.
	Line int
	// Err is the cause.
	Err error
}

// Error returns the text of the cause.
func (e *SyntaxError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

// New returns an empty file of a format.
func New(asJSON bool) *File { return &File{isJSON: asJSON} }

// Parse parses the text of a file. The error is a [*SyntaxError].
func Parse(text []byte) (*File, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		if file, err := parseJSON(text); err == nil {
			return file, nil
		}
	}
	return parseYAML(text)
}

func parseJSON(text []byte) (*File, error) {
	file := &File{text: text, isJSON: true}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		after := int(decoder.InputOffset())
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return file, nil
		}
		begin := after + len(text[after:]) - len(bytes.TrimLeft(text[after:], " \t\r\n"))
		line := 1 + bytes.Count(text[:begin], []byte("\n"))
		if err != nil {
			return nil, &SyntaxError{Line: line, Err: err}
		}
		file.documents = append(file.documents, document{begin: begin, end: int(decoder.InputOffset()), line: line, value: value})
	}
}

// parseYAML splits the text at lines that begin with "---", as readers of catalogs do.
func parseYAML(text []byte) (*File, error) {
	file := &File{text: text}
	begin, at, line, first := 0, 0, 1, 1
	add := func(end int) error {
		var value any
		if err := yaml.Unmarshal(text[begin:end], &value); err != nil {
			return &SyntaxError{Line: first, Err: err}
		}
		if value != nil {
			file.documents = append(file.documents, document{begin: begin, end: end, line: first, value: value})
		}
		return nil
	}
	for raw := range bytes.Lines(text) {
		if bytes.HasPrefix(raw, []byte("---")) {
			if err := add(at); err != nil {
				return nil, err
			}
			begin, first = at+len(raw), line+1
		}
		at += len(raw)
		line++
	}
	return file, add(at)
}

// Text returns the text of the file.
func (f *File) Text() []byte { return slices.Clone(f.text) }

// IsJSON reports whether the file is a stream of JSON values.
func (f *File) IsJSON() bool { return f.isJSON }

// Template returns the schema of a template; empty for a file of a catalog.
func (f *File) Template() string {
	if len(f.documents) == 0 {
		return ""
	}
	fields, _ := f.documents[0].value.(map[string]any)
	switch schema := text(fields, "schema"); schema {
	case SchemaBasic, SchemaSubstitutes, SchemaSemver:
		return schema
	}
	return ""
}

// Objects returns the objects of the catalog: the documents of the file, or the entries of a template.
func (f *File) Objects() []Object {
	var all []Object
	for i := range f.documents {
		d := &f.documents[i]
		fields, isObject := d.value.(map[string]any)
		if !isObject {
			continue
		}
		switch text(fields, "schema") {
		case SchemaBasic, SchemaSubstitutes:
			list, _ := fields["entries"].([]any)
			for n := range list {
				if entry, isObject := list[n].(map[string]any); isObject {
					all = append(all, newObject(i, d.line, Fields("entries").Then(Element(n)), entry))
				}
			}
		default:
			all = append(all, newObject(i, d.line, nil, fields))
		}
	}
	return all
}

func newObject(document, line int, path Path, fields map[string]any) Object {
	return Object{
		Document: document, Path: path, Line: line, Fields: fields,
		Schema: text(fields, "schema"), Package: text(fields, "package"), Name: text(fields, "name"),
	}
}

func text(fields map[string]any, key string) string {
	value, _ := fields[key].(string)
	return value
}

// Decode decodes an object into a value.
func (o *Object) Decode(into any) error {
	encoded, err := json.Marshal(o.Fields)
	if err != nil {
		return fmt.Errorf("encoding the object: %w", err)
	}
	if err := json.Unmarshal(encoded, into); err != nil {
		return fmt.Errorf("decoding the object: %w", err)
	}
	return nil
}
