package fbc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"

	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/internal/values"
)

// guessBytes is how much of a file decides whether it may be JSON.
const guessBytes = 4096

// byteOrderMark is what some editors begin UTF-8 text with.
var byteOrderMark = []byte("\xef\xbb\xbf")

// document is one object of a file, decoded without regard to its schema.
type document struct {
	// line that the object begins on, from one.
	line int
	// offset and size of the object's text in the file, in bytes.
	offset, size int
	// yaml tells that the text is YAML.
	yaml bool
	// json is the object if it was converted without being decoded, from text.
	json, text []byte
	// fields is nil for an empty document, and for one that was converted.
	fields map[string]any
}

// decoded returns the object's fields.
func (d *document) decoded() (map[string]any, error) {
	if d.json == nil {
		return d.fields, nil
	}
	fields, err := decodeYAML(d.text)
	if err != nil {
		return nil, &syntaxError{line: d.line, err: err}
	}
	return fields, nil
}

// syntaxError says where a file stops being JSON or YAML.
type syntaxError struct {
	line int
	err  error
}

func (e *syntaxError) Error() string { return e.err.Error() }

func (e *syntaxError) Unwrap() error { return e.err }

// documents calls visit for each object of a file in turn and ends at its
// first error. What is neither JSON nor YAML is a [*syntaxError].
//
// A file whose first character is a brace is a stream of JSON values. Where
// the first or second of them cannot be decoded the rest of the file is taken
// for YAML, so that flow mappings and a JSON object followed by "---" are
// read. A byte order mark before the first character is dropped.
func documents(file []byte, inner func(document) error) error {
	data := bytes.TrimPrefix(file, byteOrderMark)
	visit := func(d document) error {
		// It counts from the end of the mark.
		d.offset += len(file) - len(data)
		return inner(d)
	}
	start := data[:min(len(data), guessBytes)]
	if !bytes.HasPrefix(bytes.TrimLeftFunc(start, unicode.IsSpace), []byte("{")) {
		return yamlDocuments(data, 1, visit)
	}
	rest, line, err := jsonValues(data, visit)
	if rest == nil {
		return err
	}
	// Where YAML does not understand its very next document either, the
	// finding of the JSON decoder is the better one to report.
	decoded := 0
	yamlErr := yamlDocuments(rest, line, func(d document) error {
		decoded++
		d.offset += len(data) - len(rest)
		return visit(d)
	})
	if decoded == 0 && errors.As(yamlErr, new(*syntaxError)) {
		return err
	}
	return yamlErr
}

// jsonValues visits a stream of JSON values. When it fails so early that the
// stream may yet be YAML it returns, besides the error, what has not been
// visited and the line that this begins on.
func jsonValues(data []byte, visit func(document) error) (rest []byte, line int, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	lines := lineCounter{data: data}
	// A document with few values in all needs no count for each object.
	bounded := len(data) <= maxObjectBytes && values.Count(data) <= values.Max
	for count := 0; ; count++ {
		done := int(decoder.InputOffset())
		begin := done + len(data[done:]) - len(bytes.TrimLeft(data[done:], " \t\r\n"))
		fields, err := jsonFields(decoder, bounded)
		if errors.Is(err, io.EOF) && begin == len(data) {
			return nil, 0, nil
		}
		if errors.Is(err, errLarge) {
			return nil, 0, &syntaxError{line: lines.at(begin), err: err}
		}
		if err != nil {
			found := &syntaxError{line: lines.at(errorOffset(err, begin)), err: fmt.Errorf("decoding JSON: %w", bundles.DescribeJSON(err))}
			if count > 1 {
				return nil, 0, found
			}
			rest := skipLine(data[done:])
			return rest, 1 + bytes.Count(data[:len(data)-len(rest)], []byte("\n")), found
		}
		d := document{line: lines.at(begin), offset: begin, size: int(decoder.InputOffset()) - begin, fields: fields}
		if err := visit(d); err != nil {
			return nil, 0, err
		}
	}
}

// jsonFields decodes the next object. It looks first at how large that is unless
// all objects together are bounded.
func jsonFields(decoder *json.Decoder, bounded bool) (fields map[string]any, err error) {
	if bounded {
		err = decoder.Decode(&fields)
		return fields, err
	}
	var text json.RawMessage
	if err := decoder.Decode(&text); err != nil {
		return nil, err
	}
	if err := bearable(text); err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &fields)
	return fields, err
}

var errLarge = errors.New("an object is too large")

// bearable returns an error for an object that takes too much memory to decode.
func bearable(text []byte) error {
	if len(text) > maxObjectBytes {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", errLarge, len(text), maxObjectBytes)
	}
	if n := values.Count(text); n > values.Max {
		return fmt.Errorf("%w: it may hold %d values, at most %d are allowed", errLarge, n, values.Max)
	}
	return nil
}

// errorOffset returns where in the input a JSON error lies, for want of better
// where the value begins.
func errorOffset(err error, begin int) int {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return int(syntax.Offset)
	}
	return begin
}

// skipLine drops leading white space up to and including the first line end.
func skipLine(data []byte) []byte {
	trimmed := bytes.TrimLeftFunc(data, unicode.IsSpace)
	space := data[:len(data)-len(trimmed)]
	if end := bytes.IndexByte(space, '\n'); end >= 0 {
		return data[end+1:]
	}
	return trimmed
}

// lineCounter tells line numbers for rising offsets without counting twice.
type lineCounter struct {
	data  []byte
	upTo  int
	count int
}

func (l *lineCounter) at(offset int) int {
	offset = min(max(offset, l.upTo), len(l.data))
	l.count += bytes.Count(l.data[l.upTo:offset], []byte("\n"))
	l.upTo = offset
	return l.count + 1
}

var yamlSeparator = []byte("---")

// yamlDocuments visits the YAML documents of a file, the first line of which
// has the given number.
func yamlDocuments(data []byte, line int, visit func(document) error) error {
	var (
		text  []byte
		begin = line
		// The document's text and the current line begin there.
		from, at int
	)
	flush := func() error {
		if len(text) == 0 {
			return nil
		}
		d := document{line: begin, offset: from, size: at - from, yaml: true, text: text}
		text = nil
		var converted bool
		if len(d.text) <= maxObjectBytes {
			d.json, converted = convertYAML(d.text)
		}
		if converted {
			return visit(d)
		}
		var err error
		if d.fields, err = decodeYAML(d.text); err != nil {
			return &syntaxError{line: d.line, err: err}
		}
		return visit(d)
	}
	for raw := range bytes.Lines(data) {
		current := bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
		after, separator := bytes.CutPrefix(current, yamlSeparator)
		if !separator {
			if len(text) == 0 {
				from = at
			}
			text = append(append(text, current...), '\n')
			line++
			at += len(raw)
			continue
		}
		if after = bytes.TrimSpace(after); len(after) > 0 && after[0] != '#' {
			return &syntaxError{line: line, err: fmt.Errorf("%w: %s", errSeparator, bundles.Quote(string(after)))}
		}
		// A leading separator belongs to the document that it introduces.
		leading := len(text) == 0
		if err := flush(); err != nil {
			return err
		}
		if leading {
			from = at
			text = append(append(text, current...), '\n')
		}
		begin = line + 1
		line++
		at += len(raw)
	}
	return flush()
}

var (
	errSeparator = errors.New("text after a YAML document separator")
	errLeftOver  = errors.New("text after the end of a YAML document; begin another document with a line ---")
)

func decodeYAML(text []byte) (map[string]any, error) {
	if err := bearable(text); err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("decoding YAML: %w", err)
	}
	if mayEndEarly(text) {
		if err := nothingLeft(text); err != nil {
			return nil, err
		}
	}
	var fields map[string]any
	if err := json.Unmarshal(asJSON, &fields); err != nil {
		return nil, fmt.Errorf("decoding YAML: %w", bundles.DescribeJSON(err))
	}
	return fields, nil
}

// mayEndEarly tells whether the decoder may have stopped before the end of the
// text. It cannot where a mapping begins in the first column and no line ends
// the document.
func mayEndEarly(text []byte) bool {
	begun := false
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("...")) {
			return true
		}
		trimmed := bytes.TrimSpace(line)
		if begun || len(trimmed) == 0 || trimmed[0] == '#' || bytes.HasPrefix(line, yamlSeparator) {
			continue
		}
		if c := line[0]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return true
		}
		begun = true
	}
	return false
}

// nothingLeft reports text that follows the first document.
func nothingLeft(text []byte) error {
	decoder := goyaml.NewDecoder(bytes.NewReader(text))
	for first := true; ; first = false {
		var ignored struct{}
		err := decoder.Decode(&ignored)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if !first {
			return errLeftOver
		}
	}
}
