package fbc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/bundles"
)

// Object is one object of a catalog in its original form, with all its fields.
type Object struct {
	// Schema, Package and Name are fields of the object.
	Schema, Package, Name string
	// Origin is the position of the object.
	Origin bundles.Origin
	// JSON is the whole object. An object written as YAML is converted.
	JSON json.RawMessage
}

// Objects returns the objects of one of the packages, in the order of the files: the olm.package
// objects of that name and all objects that name it. It skips the objects for which keep, called
// with schema and name, returns false, and does not decode them. A nil keep selects all.
//
// The error is [bundles.Problems] with the objects that could not be read, or wraps the
// cause of ctx.
func (r *Reader) Objects(ctx context.Context, name string, keep func(schema, name string) bool) ([]Object, error) {
	var (
		found    []Object
		problems bundles.Problems
	)
	err := r.walk(ctx, name, func(opened *openedFile, space *workspace, i int) error {
		rec := &r.records[i]
		if keep != nil && !keep(rec.schema, rec.name) {
			return nil
		}
		text, err := r.text(opened, space, rec)
		if err != nil {
			return err
		}
		found = append(found, Object{
			Schema: rec.schema, Package: rec.pkg, Name: rec.name, Origin: r.origin(rec), JSON: text,
		})
		return nil
	}, func(_ header, problem bundles.Problem) { problems = append(problems, problem) })
	if err != nil {
		return nil, err
	}
	return found, problems.OrNil()
}

// text returns an object as JSON.
func (r *Reader) text(file *openedFile, space *workspace, rec *record) (json.RawMessage, error) {
	var err error
	if space.text, err = file.read(space.text, rec); err != nil {
		return nil, &readError{err}
	}
	if text, ok := space.plain(rec); ok && json.Valid(text) {
		if rec.form == formYAML {
			return text, nil // not in the buffer
		}
		return slices.Clone(bytes.TrimSpace(text)), nil
	}
	fields, err := decodeText(space.text, rec.form == formYAML)
	if err != nil {
		return nil, &readError{err}
	}
	if deeper(fields, r.options.MaxDepth) {
		return nil, fmt.Errorf("%w: more than %d levels", errTooDeep, r.options.MaxDepth)
	}
	return normalize(fields)
}
