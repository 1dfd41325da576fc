package catalogfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"sigs.k8s.io/yaml"
)

var (
	errNoValue  = errors.New("there is no such value")
	errNotList  = errors.New("is not a list")
	errNotEqual = errors.New("the changed text does not decode to what was asked for")
)

// AddDocument returns the file with one more document at its end.
func (f *File) AddDocument(value any) (*File, error) {
	wanted, err := plain(value)
	if err != nil {
		return nil, err
	}
	var text []byte
	if f.isJSON {
		text, err = f.addJSON(value)
	} else {
		text, err = f.addYAML(value)
	}
	if err != nil {
		return nil, err
	}
	return f.checked(text, append(f.values(), wanted))
}

// Append returns the file with one more element at the end of a list. It creates a missing list.
func (f *File) Append(document int, path Path, value any) (*File, error) {
	wanted, err := plain(value)
	if err != nil {
		return nil, err
	}
	return f.change(document, path, func(before any, found bool) (any, error) {
		if !found || before == nil {
			return []any{wanted}, nil
		}
		list, isList := before.([]any)
		if !isList {
			return nil, fmt.Errorf("%s %w", path, errNotList)
		}
		return append(slices.Clone(list), wanted), nil
	}, edit{append: true, path: path, value: value})
}

// Set returns the file with a new value at a path, whose last field may be missing.
func (f *File) Set(document int, path Path, value any) (*File, error) {
	wanted, err := plain(value)
	if err != nil {
		return nil, err
	}
	return f.change(document, path, func(any, bool) (any, error) { return wanted, nil }, edit{path: path, value: value})
}

// edit is a change to the text of a document.
type edit struct {
	// append adds the value to the list at the path. Otherwise the value replaces the one at the path.
	append bool
	path   Path
	value  any
}

// change applies an edit to the text of a document. It checks that the value at the path becomes
// what result returns for it.
func (f *File) change(number int, path Path, result func(before any, found bool) (any, error), e edit) (*File, error) {
	d := f.documents[number]
	wanted, err := replaced(d.value, path, result)
	if err != nil {
		return nil, err
	}
	values := f.values()
	values[number] = wanted
	var lastErr error
	for _, editor := range f.editors() {
		part, err := editor(f.text[d.begin:d.end], e)
		if err != nil {
			lastErr = err
			continue
		}
		changed, err := f.checked(slices.Concat(f.text[:d.begin], part, f.text[d.end:]), values)
		if err == nil {
			return changed, nil
		}
		lastErr = err
	}
	return nil, fmt.Errorf("changing %s: %w", path, lastErr)
}

// editors returns the ways to edit a document, the one that preserves most of the text first.
func (f *File) editors() []func([]byte, edit) ([]byte, error) {
	if f.isJSON {
		return []func([]byte, edit) ([]byte, error){editJSON}
	}
	return []func([]byte, edit) ([]byte, error){editYAML, editNodes}
}

func (f *File) values() []any {
	values := make([]any, len(f.documents))
	for i := range f.documents {
		values[i] = f.documents[i].value
	}
	return values
}

// checked parses a changed text and checks that its documents are the wanted values.
func (f *File) checked(text []byte, wanted []any) (*File, error) {
	changed, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotEqual, err)
	}
	if !reflect.DeepEqual(changed.values(), wanted) {
		return nil, errNotEqual
	}
	return changed, nil
}

// replaced returns a value in which result has replaced the value at a path.
func replaced(value any, path Path, result func(before any, found bool) (any, error)) (any, error) {
	if len(path) == 0 {
		return result(value, true)
	}
	step := path[0]
	if step.element {
		list, isList := value.([]any)
		if !isList || step.index >= len(list) {
			return nil, fmt.Errorf("element %d: %w", step.index, errNoValue)
		}
		inner, err := replaced(list[step.index], path[1:], result)
		if err != nil {
			return nil, err
		}
		list = slices.Clone(list)
		list[step.index] = inner
		return list, nil
	}
	fields, isObject := value.(map[string]any)
	before, found := fields[step.key]
	if !isObject || !found && len(path) > 1 {
		return nil, fmt.Errorf("field %s: %w", step.key, errNoValue)
	}
	var (
		inner any
		err   error
	)
	if len(path) == 1 {
		inner, err = result(before, found)
	} else {
		inner, err = replaced(before, path[1:], result)
	}
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(fields)+1)
	maps.Copy(out, fields)
	out[step.key] = inner
	return out, nil
}

// plain returns a value in its decoded form.
func plain(value any) (any, error) {
	encoded, err := marshal(value, "", "")
	if err != nil {
		return nil, err
	}
	var out any
	if err := yaml.Unmarshal(encoded, &out); err != nil {
		return nil, fmt.Errorf("decoding the value: %w", err)
	}
	return out, nil
}

// marshal returns a value as JSON, in one line when indent is empty.
func marshal(value any, prefix, indent string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if indent != "" {
		encoder.SetIndent(prefix, indent)
	}
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding the value: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
