package catalogfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// indentJSON is opm's indentation of JSON.
const indentJSON = "    "

func (f *File) addJSON(value any) ([]byte, error) {
	indent := indentJSON
	if len(f.documents) > 0 && !slices.ContainsFunc(f.documents, func(d document) bool {
		return bytes.ContainsRune(f.text[d.begin:d.end], '\n')
	}) {
		indent = ""
	}
	added, err := marshal(value, "", indent)
	if err != nil {
		return nil, err
	}
	text := slices.Clone(f.text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return append(append(text, added...), '\n'), nil
}

// span is a value in a text of JSON.
type span struct{ begin, end int }

// editJSON edits a JSON value.
func editJSON(text []byte, e edit) ([]byte, error) {
	at, rest, err := find(text, e.path)
	if err != nil {
		return nil, err
	}
	switch {
	case len(rest) == 1:
		value := e.value
		if e.append {
			value = []any{value}
		}
		key, err := json.Marshal(rest[0].key)
		if err != nil {
			return nil, fmt.Errorf("encoding a field: %w", err)
		}
		return insert(text, at, key, value)
	case e.append && string(text[at.begin:at.end]) != "null":
		return insert(text, at, nil, e.value)
	case e.append:
		return replace(text, at, []any{e.value})
	}
	return replace(text, at, e.value)
}

// find returns the value at a path. If the last field is missing, it returns the object that lacks
// it and the step.
func find(text []byte, path Path) (at span, rest Path, err error) {
	at = span{0, len(text)}
	for i, step := range path {
		next, found := child(text, at, step)
		switch {
		case found:
			at = next
		case i == len(path)-1 && !step.element:
			return at, path[i:], nil
		default:
			return at, nil, fmt.Errorf("%s: %w", path[:i+1], errNoValue)
		}
	}
	return at, nil, nil
}

// child returns a field of an object or an element of a list. Of repeated fields the last one
// counts.
func child(text []byte, at span, step Step) (found span, ok bool) {
	index := 0
	each(text, at, func(key string, value span) {
		if step.element && key == "" && index == step.index || !step.element && key == step.key {
			found, ok = value, true
		}
		index++
	})
	return found, ok
}

// each visits the fields of an object, or the elements of a list with an empty key.
func each(text []byte, at span, visit func(key string, value span)) {
	i := at.begin + 1
	isObject := text[at.begin] == '{'
	if !isObject && text[at.begin] != '[' {
		return
	}
	for {
		i = space(text, i)
		if i >= at.end || text[i] == '}' || text[i] == ']' {
			return
		}
		key := ""
		if isObject {
			end := skip(text, i)
			_ = json.Unmarshal(text[i:end], &key) // the text has been decoded before
			i = space(text, space(text, end)+1)
		}
		end := skip(text, i)
		visit(key, span{i, end})
		if i = space(text, end); i < at.end && text[i] == ',' {
			i++
		}
	}
}

// space returns the end of white space.
func space(text []byte, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
		i++
	}
	return i
}

// skip returns the end of the value that begins at i.
func skip(text []byte, i int) int {
	switch text[i] {
	case '"':
		return skipString(text, i)
	case '{', '[':
		return skipNested(text, i)
	}
	for i < len(text) && strings.IndexByte(" \t\r\n,:]}", text[i]) < 0 {
		i++
	}
	return i
}

func skipString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipNested returns the end of an object or a list.
func skipNested(text []byte, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = skipString(text, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// insert adds a value at the end of a list, or with a key at the end of an object. It follows the
// existing layout.
func insert(text []byte, at span, key []byte, value any) ([]byte, error) {
	var last span
	each(text, at, func(_ string, value span) { last = value })
	in := layoutOf(text, at, last)
	encoded, err := marshal(value, in.inner, in.indent)
	if err != nil {
		return nil, err
	}
	if key != nil {
		encoded = slices.Concat(key, []byte(":"), []byte(strings.Repeat(" ", min(len(in.indent), 1))), encoded)
	}
	if last.end == 0 {
		begin := text[:at.begin+1]
		if in.indent == "" {
			return slices.Concat(begin, encoded, text[at.begin+1:]), nil
		}
		return slices.Concat(begin, []byte("\n"+in.inner), encoded, []byte("\n"+in.outer), text[at.end-1:]), nil
	}
	return slices.Concat(text[:last.end], []byte(","+in.separator), encoded, text[last.end:]), nil
}

// layout is the formatting of a collection's elements.
type layout struct {
	// outer and inner are the white space before the collection and before its elements. indent is
	// the indentation of one level, empty for a collection in one line.
	outer, inner, indent string
	// separator follows a comma.
	separator string
}

// layoutOf returns the layout of a collection; last is its last element.
func layoutOf(text []byte, at, last span) layout {
	many := bytes.ContainsRune(text[at.begin:at.end], '\n') || last.end == 0 && bytes.ContainsRune(text, '\n')
	switch {
	case !many && bytes.Contains(text, []byte(", ")):
		return layout{separator: " "}
	case !many:
		return layout{}
	case last.end == 0:
		outer := margin(text, at.begin)
		return layout{outer: outer, inner: outer + unit(text), indent: unit(text)}
	}
	inner := margin(text, last.begin)
	return layout{outer: margin(text, at.end-1), inner: inner, indent: unit(text), separator: "\n" + inner}
}

// replace replaces a value by another.
func replace(text []byte, at span, value any) ([]byte, error) {
	indent := ""
	if bytes.ContainsRune(text, '\n') {
		indent = unit(text)
	}
	encoded, err := marshal(value, margin(text, at.begin), indent)
	if err != nil {
		return nil, err
	}
	return slices.Concat(text[:at.begin], encoded, text[at.end:]), nil
}

// margin returns the white space with which the line at i begins.
func margin(text []byte, i int) string {
	begin := bytes.LastIndexByte(text[:i], '\n') + 1
	end := begin
	for end < len(text) && (text[end] == ' ' || text[end] == '\t') {
		end++
	}
	return string(text[begin:end])
}

// unit returns the indentation of the first field.
func unit(text []byte) string {
	i := bytes.IndexByte(text, '\n')
	if i < 0 || i+1 >= len(text) {
		return indentJSON
	}
	if found := margin(text, i+1); found != "" {
		return found
	}
	return indentJSON
}
