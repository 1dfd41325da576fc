package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"unicode"

	"go.yaml.in/yaml/v2"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/internal/values"
)

// syntaxError is the error of a file that is neither YAML nor JSON, or of YAML that JSON cannot
// express, with its line.
type syntaxError struct {
	line   int
	remedy string
	err    error
}

func (e *syntaxError) Error() string { return e.err.Error() }

func (e *syntaxError) Unwrap() error { return e.err }

const (
	remedyYAML = "correct the YAML; 'kubectl apply --dry-run=client -f FILE' says the same"
	remedyJSON = "correct the JSON"
)

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	separator     = []byte("---")
)

// documents calls visit for each value in a nonempty file, as compact JSON, and stops at the first
// error. line is the first line of the document, from one. The result of a value that far exceeds
// limit bytes is an error.
func documents(file []byte, limit int, visit func(line int, text []byte) error) error {
	file = bytes.TrimPrefix(file, byteOrderMark)
	if start := bytes.TrimLeftFunc(file, unicode.IsSpace); !bytes.HasPrefix(start, []byte("{")) {
		return yamlFile(file, limit, visit)
	}
	found, err := jsonValues(file)
	if err != nil {
		// The file may be a flow mapping of YAML.
		if yamlErr := yamlFile(file, limit, visit); yamlErr == nil || !errors.As(yamlErr, new(*syntaxError)) {
			return yamlErr
		}
		return err
	}
	for i := range found {
		if err := visit(found[i].line, found[i].text); err != nil {
			return err
		}
	}
	return nil
}

type jsonValue struct {
	line int
	text []byte
}

// jsonValues reads a stream of JSON objects.
func jsonValues(file []byte) ([]jsonValue, error) {
	var found []jsonValue
	decoder := json.NewDecoder(bytes.NewReader(file))
	for {
		begin := decoder.InputOffset()
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			offset := begin
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				offset = syntax.Offset
			}
			return nil, &syntaxError{lineAt(file, offset), remedyJSON, fmt.Errorf("is not valid JSON: %w", bundles.DescribeJSON(err))}
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return nil, &syntaxError{lineAt(file, begin), remedyJSON, fmt.Errorf("is not valid JSON: %w", err)}
		}
		found = append(found, jsonValue{lineAt(file, decoder.InputOffset()-int64(len(value))), compact.Bytes()})
	}
}

func lineAt(file []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(file)))
	return 1 + bytes.Count(file[:offset], []byte("\n"))
}

// yamlFile reads the YAML documents of a file.
func yamlFile(file []byte, limit int, visit func(line int, text []byte) error) error {
	begin, from, line, at := 1, 0, 1, 0
	flush := func() error { return yamlDocument(file[from:at], begin, limit, visit) }
	for raw := range bytes.Lines(file) {
		if after, ok := bytes.CutPrefix(raw, separator); ok && (len(after) == 0 || unicode.IsSpace(rune(after[0]))) {
			if err := flush(); err != nil {
				return err
			}
			begin, from = line, at
		}
		line++
		at += len(raw)
	}
	return flush()
}

// maxDocumentBytes is the largest text that the YAML parser gets at once, in addition to
// [values.Max]. Objects that can be stored are far smaller.
const maxDocumentBytes = 4 << 20

const remedyLong = "shorten or split it: an object that the API server can store has at most 1.5 MiB as JSON"

// bearable returns an error for a document that is too large for the parser.
func bearable(text []byte, line int) error {
	if len(text) > maxDocumentBytes {
		return &syntaxError{line, remedyLong, fmt.Errorf("%s %w: it has %d bytes, at most %d are allowed", guess(text), errLong, len(text), maxDocumentBytes)}
	}
	if n := values.Count(text); n > values.Max {
		return &syntaxError{line, remedyLong, fmt.Errorf("%s %w: it may hold %d values, at most %d are allowed", guess(text), errLong, n, values.Max)}
	}
	return nil
}

// guessBytes is the size of the part of a text that guess checks.
const guessBytes = 64 << 10

var (
	kindLine = regexp.MustCompile(`(?m)^\s*\{?\s*"?kind"?:\s*"?([A-Za-z]+)`)
	nameLine = regexp.MustCompile(`(?s)\n\s*"?metadata"?:.*?\n\s+"?name"?:\s*"?([A-Za-z0-9.-]+)`)
)

// guess returns the likely kind of a text that is not decoded.
func guess(text []byte) string {
	text = text[:min(len(text), guessBytes)]
	kind := kindLine.FindSubmatch(text)
	if kind == nil {
		return "a document"
	}
	named := head{kind: bundles.Clip(string(kind[1]), 100)}
	if name := nameLine.FindSubmatch(text); name != nil {
		named.name = string(name[1])
	}
	return named.String()
}

// yamlDocument reads one document, or several if lines end them.
func yamlDocument(text []byte, line, limit int, visit func(line int, text []byte) error) error {
	if err := bearable(text, line); err != nil {
		return err
	}
	found, err := yamlValues(text)
	for _, one := range found {
		if one.value == nil {
			continue
		}
		e := newEncoder(limit)
		if err := e.value(one.value, one.ordered, 0); err != nil {
			return &syntaxError{line, "correct the manifest", err}
		}
		if err := visit(firstLine(text, line), e.out.Bytes()); err != nil {
			return err
		}
	}
	if err != nil {
		where, message := yamlPlace(err, line)
		return &syntaxError{where, remedyYAML, fmt.Errorf("is not valid YAML: %w", message)}
	}
	return nil
}

// yamlValue is a decoded document.
type yamlValue struct {
	value any
	// ordered is the document with every key in its text; nil if no key is repeated.
	ordered yaml.MapSlice
}

// yamlValues decodes the documents of a text. With an error, it returns those before the error.
func yamlValues(text []byte) ([]yamlValue, error) {
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.SetStrict(true)
	found, err := decodeYAML(strict, nil)
	if _, twice := errors.AsType[*yaml.TypeError](err); twice {
		return decodeYAML(yaml.NewDecoder(bytes.NewReader(text)), yaml.NewDecoder(bytes.NewReader(text)))
	}
	return found, err
}

func decodeYAML(decoder, ordered *yaml.Decoder) ([]yamlValue, error) {
	var found []yamlValue
	for {
		var one yamlValue
		err := decoder.Decode(&one.value)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err //nolint:wrapcheck // the caller says where it is
		}
		if ordered != nil {
			_ = ordered.Decode(&one.ordered) // ordered stays nil for a document that is not a mapping
		}
		found = append(found, one)
	}
}

// firstLine returns the line of the content of a document, after its separator.
func firstLine(text []byte, line int) int {
	for raw := range bytes.Lines(text) {
		trimmed := bytes.TrimSpace(raw)
		if len(trimmed) > 0 && trimmed[0] != '#' && !bytes.Equal(trimmed, separator) {
			return line
		}
		line++
	}
	return line
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// yamlPlace removes the line from an error of the parser, which counts from the start of the
// document, and returns the line in the file.
func yamlPlace(err error, line int) (int, error) {
	text := bundles.OneLine(err.Error())
	found := yamlLine.FindStringSubmatch(text)
	if found == nil {
		return line, errors.New(text)
	}
	if n, convErr := strconv.Atoi(found[1]); convErr == nil {
		line += n - 1
	}
	return line, errors.New(text[len(found[0]):])
}

// encoder writes decoded YAML as JSON. With aliases, a short text can have a huge value, so the
// encoder stops at a size that no caller accepts.
type encoder struct {
	out     bytes.Buffer
	scalars *json.Encoder
	limit   int
}

// maxDepth is the largest nesting of objects and lists.
const maxDepth = 1000

var (
	errDeep = errors.New("is nested more than 1000 levels deep")
	errLong = errors.New("is too large")
	errKey  = errors.New("is no key that JSON knows")
	errJSON = errors.New("is no value that JSON knows")
)

func newEncoder(limit int) *encoder {
	e := &encoder{limit: limit}
	e.scalars = json.NewEncoder(&e.out)
	e.scalars.SetEscapeHTML(false)
	return e
}

// value writes a value. ordered is the same value with every key in its text, or nil.
func (e *encoder) value(value, ordered any, depth int) error {
	// An object that is only somewhat too long gets an error with its name later.
	if e.out.Len() > 8*e.limit {
		return fmt.Errorf("an object %w: it has more than %d bytes as JSON, at most %d can be stored", errLong, 8*e.limit, e.limit)
	}
	if depth > maxDepth {
		return fmt.Errorf("an object %w", errDeep)
	}
	switch value := value.(type) {
	case map[any]any:
		keys, _ := ordered.(yaml.MapSlice)
		return e.object(value, keys, depth)
	case []any:
		elements, _ := ordered.([]any)
		e.out.WriteByte('[')
		for i, element := range value {
			if i > 0 {
				e.out.WriteByte(',')
			}
			var keys any
			if i < len(elements) {
				keys = elements[i]
			}
			if err := e.value(element, keys, depth+1); err != nil {
				return err
			}
		}
		e.out.WriteByte(']')
		return nil
	default:
		return e.scalar(value)
	}
}

func (e *encoder) scalar(value any) error {
	if err := e.scalars.Encode(value); err != nil {
		return fmt.Errorf("%s %w", bundles.Quote(fmt.Sprint(value)), errJSON)
	}
	// Remove the newline that an Encoder adds.
	e.out.Truncate(e.out.Len() - 1)
	return nil
}

// object writes a mapping. A repeated key is also written with null, before its last value, so
// readers of the JSON can warn.
func (e *encoder) object(value map[any]any, ordered yaml.MapSlice, depth int) error {
	members := make(map[string]any, len(value))
	for key, member := range value {
		name, err := keyText(key)
		if err != nil {
			return err
		}
		members[name] = member
	}
	written, twice := make(map[string]any, len(ordered)), map[string]bool{}
	for _, item := range ordered {
		if name, err := keyText(item.Key); err == nil {
			_, twice[name] = written[name]
			written[name] = item.Value
		}
	}
	e.out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			e.out.WriteByte(',')
		}
		if twice[name] {
			if err := e.member(name, nil, nil, depth); err != nil {
				return err
			}
			e.out.WriteByte(',')
		}
		if err := e.member(name, members[name], written[name], depth); err != nil {
			return err
		}
	}
	e.out.WriteByte('}')
	return nil
}

func (e *encoder) member(name string, value, ordered any, depth int) error {
	if err := e.scalar(name); err != nil {
		return err
	}
	e.out.WriteByte(':')
	return e.value(value, ordered, depth+1)
}

// keyText returns a key in the form that Kubernetes uses.
func keyText(key any) (string, error) {
	switch key := key.(type) {
	case string:
		return key, nil
	case int, int64, uint64, bool:
		return fmt.Sprint(key), nil
	case float64:
		return strconv.FormatFloat(key, 'g', -1, 64), nil
	default:
		return "", fmt.Errorf("%s %w", bundles.Quote(fmt.Sprint(key)), errKey)
	}
}
