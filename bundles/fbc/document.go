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

// guessBytes is the part of a file that decides whether it may be JSON.
const guessBytes = 4096

// byteOrderMark is the mark with which some editors begin UTF-8 text.
var byteOrderMark = []byte("\xef\xbb\xbf")

// document is one object of a file, decoded independently of its schema.
type document struct {
	// line is the first line of the object, from one.
	line int
	// offset and size are the position and length of the object's text in the file, in bytes.
	offset, size int
	// yaml is set if the text is YAML.
	yaml bool
	// json is the object if it was converted from text without being decoded.
	json, text []byte
	// fields is nil for an empty or a converted document.
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

// syntaxError is the error of a file that is neither JSON nor YAML, with its line.
type syntaxError struct {
	line int
	err  error
}

func (e *syntaxError) Error() string { return e.err.Error() }

func (e *syntaxError) Unwrap() error { return e.err }

// documents calls visit for each object of a file in turn and stops at the first error. Text that
// is neither JSON nor YAML is a [*syntaxError].
//
// A file whose first character is a brace is a stream of JSON values. If the first or second of
// them cannot be decoded, the rest of the file is read as YAML. This covers flow mappings and a
// JSON object followed by "---". A byte order mark before the first character is ignored.
func documents(file []byte, inner func(document) error) error {
	data := bytes.TrimPrefix(file, byteOrderMark)
	visit := func(d document) error {
		// The offset counts from the end of the mark.
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
	// If the YAML parser also fails at its first document, the error of the JSON decoder is more useful.
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

// jsonValues visits a stream of JSON values. If it fails at one of the first values, the rest may
// be YAML. Then it also returns the remaining data and the line at which it begins.
func jsonValues(data []byte, visit func(document) error) (rest []byte, line int, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	lines := lineCounter{data: data}
	// If all values together are few, their number in each object is not checked.
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

// jsonFields decodes the next object. It checks the size of the object first, unless all objects
// together are bounded.
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

// errorOffset returns the position of a JSON error in the input, or the beginning of the value if it is unknown.
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

// lineCounter returns line numbers for ascending offsets. It counts each line once.
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

// yamlDocuments visits the YAML documents of a file. line is the number of the file's first line.
func yamlDocuments(data []byte, line int, visit func(document) error) error {
	var (
		text  []byte
		begin = line
		// from is the start of the document's text, and at is the start of the current line.
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

// mayEndEarly reports whether the decoder may have stopped before the end of the text. It cannot if
// a mapping begins in the first column and no line ends the document.
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

// nothingLeft returns an error if text follows the first document.
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
