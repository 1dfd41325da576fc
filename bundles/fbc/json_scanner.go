package fbc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/internal/jsontext"
)

// form is the way to decode the text of an object.
type form uint8

const (
	// formPlain is plain JSON, see [typed].
	formPlain form = iota
	// formJSON is a JSON value that only encoding/json can decode.
	formJSON
	// formYAML is a YAML document.
	formYAML
)

// record is the position and the header of an object.
type record struct {
	header

	// file is the index of the file.
	file int
	form form
	// identified is set if the header is known without decoding the object.
	identified bool
	line       int
	// offset and size are the position of the object's text in the file.
	offset, size int64
}

const (
	// scanBytes is the size of the part of a file that is scanned in one go, unless one object is larger.
	scanBytes = 512 << 10
	// maxObjectBytes is the size of the largest object.
	maxObjectBytes = 64 << 20
)

// errPeculiar means that only the general decoders can read a file.
var errPeculiar = errors.New("not a plain stream of JSON objects")

// jsonScanner finds the objects of files that are streams of plain JSON objects.
type jsonScanner struct {
	options Options
	// buffer holds a part of the file that begins at the offset base.
	buffer []byte
	base   int64
	ended  bool
	file   io.Reader
	// at is a position in the buffer, on the line line.
	at, line int
	// text is the text of the last object.
	text  []byte
	names map[string]string
}

// current decodes the last object in full.
func (s *jsonScanner) current() (map[string]any, error) {
	fields, err := decodeText(s.text, false)
	if err != nil {
		return nil, errPeculiar
	}
	return fields, nil
}

// scan calls visit for each object of a file of about that size. It returns errPeculiar unless
// [documents] would read the whole file as a stream of JSON objects. Other errors come from visit
// and from reads.
func (s *jsonScanner) scan(file io.Reader, size int64, visit func(record) error) error {
	s.buffer, s.base, s.ended, s.file, s.at, s.line = s.buffer[:0], 0, false, file, 0, 1
	if want := int(min(size+1, scanBytes)); cap(s.buffer) < want {
		// One more byte detects the end of the file.
		s.buffer = make([]byte, 0, want)
	}
	if err := s.fill(); err != nil {
		return err
	}
	if bytes.HasPrefix(s.buffer, byteOrderMark) {
		s.at = len(byteOrderMark)
	}
	if begin := jsontext.SkipSpace(s.buffer, s.at); begin >= len(s.buffer) || begin-s.at >= guessBytes {
		return errPeculiar
	}
	for {
		r, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(r); err != nil {
			return err
		}
	}
}

// next returns the next object, or io.EOF.
func (s *jsonScanner) next() (record, error) {
	for {
		begin := jsontext.SkipSpace(s.buffer, s.at)
		s.line += bytes.Count(s.buffer[s.at:begin], []byte("\n"))
		s.at = begin
		if begin < len(s.buffer) {
			if s.buffer[begin] != '{' {
				return record{}, errPeculiar
			}
			r, end := s.header(begin)
			if end != jsontext.Broken {
				return s.take(r, end)
			}
		}
		if s.ended && begin >= len(s.buffer) {
			return record{}, io.EOF
		}
		if s.ended || len(s.buffer)-begin > maxObjectBytes {
			return record{}, errPeculiar
		}
		if err := s.fill(); err != nil {
			return record{}, err
		}
	}
}

// take returns the record of the object that ends at end.
func (s *jsonScanner) take(r record, end int) (record, error) {
	text := s.buffer[s.at:end]
	if len(text) > maxObjectBytes || !utf8.Valid(text) {
		return record{}, errPeculiar
	}
	r.line, r.offset, r.size = s.line, s.base+int64(s.at), int64(len(text))
	s.line += bytes.Count(text, []byte("\n"))
	r.identified = r.form == formPlain
	s.at, s.text = end, text
	return r, nil
}

// fill discards the scanned part of the buffer and reads more.
func (s *jsonScanner) fill() error {
	kept := copy(s.buffer, s.buffer[s.at:])
	s.base += int64(s.at)
	s.buffer, s.at = s.buffer[:kept], 0
	if kept > cap(s.buffer)/2 {
		s.buffer = slices.Grow(s.buffer, cap(s.buffer))
	}
	n, err := io.ReadFull(s.file, s.buffer[kept:cap(s.buffer)])
	s.buffer = s.buffer[:kept+n]
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.ended = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading file: %w", err)
	}
	return nil
}

// maxPlainKeys is the number of fields up to which the keys of an object are compared with each other.
const maxPlainKeys = 32

// plainKeys are the keys of an object that have been read.
type plainKeys struct {
	keys  [maxPlainKeys][]byte
	count int
}

// add adds a key and reports whether it certainly differs from the others, regardless of case.
func (p *plainKeys) add(key []byte) bool {
	if p.count == maxPlainKeys || !jsontext.PlainASCII(key) {
		return false
	}
	for _, other := range p.keys[:p.count] {
		if len(other) == len(key) && bytes.EqualFold(other, key) {
			return false
		}
	}
	p.keys[p.count] = key
	p.count++
	return true
}

// header scans the object at i and reads its header.
func (s *jsonScanner) header(i int) (record, int) {
	var (
		out  record
		keys plainKeys
		scan = jsontext.Scanner{Text: s.buffer, Depth: 1, Deepest: 1}
		text = s.buffer
	)
	i = jsontext.SkipSpace(text, i+1)
	if i < len(text) && text[i] == '}' {
		return out, i + 1
	}
	for {
		end, value := jsontext.KeyEnd(text, i)
		if end == jsontext.Broken {
			return out, jsontext.Broken
		}
		key := text[i+1 : end-1]
		if i = scan.Value(value); i == jsontext.Broken {
			return out, jsontext.Broken
		}
		if !keys.add(key) || !s.note(&out.header, key, text[value:i]) {
			out.form = formJSON
		}
		var closed bool
		if i, closed = jsontext.Next(text, i, '}'); i == jsontext.Broken {
			return out, jsontext.Broken
		}
		if !closed {
			continue
		}
		if scan.Deepest >= s.options.MaxDepth {
			out.form = formJSON
		}
		return out, i + 1
	}
}

// note stores the value of a field if it belongs to the header. It reports whether the value is certain.
func (s *jsonScanner) note(head *header, key, value []byte) bool {
	var to *string
	switch field := jsontext.Find(customFields, key); field {
	case jsontext.Unknown:
		return true
	case jsontext.Unsure:
		return false
	default:
		to = [...]*string{&head.schema, &head.pkg, &head.name}[field]
	}
	text, plain := jsontext.PlainString(value)
	if !plain {
		return false
	}
	*to = s.intern(text)
	return true
}

// intern returns a text that is stored once, however often it occurs.
func (s *jsonScanner) intern(text []byte) string {
	if known, ok := s.names[string(text)]; ok {
		return known
	}
	if s.names == nil {
		s.names = make(map[string]string)
	}
	out := string(text)
	s.names[out] = out
	return out
}

// group returns the package that an object is or names.
func (h header) group() string {
	if h.schema == bundles.SchemaPackage {
		return h.name
	}
	return h.pkg
}
