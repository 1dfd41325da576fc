package bundles

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"reflect"
	"strings"

	"github.com/chandlery/chandlery/bundles/internal/jsontext"
)

// shape is the JSON shape of a Go type.
type shape struct {
	kind reflect.Kind
	// raw marks text that is kept unchanged.
	raw bool
	// elem is the shape of a list's elements.
	elem *shape
	// fields are the fields of a struct in their order, and names are their names.
	fields []shapeField
	names  []string
}

type shapeField struct {
	*shape

	name string
	// key is the encoded name, with the colon.
	key string
	// optional is set if an empty field is omitted. Otherwise zero is its encoding.
	optional bool
	zero     string
}

var csvMetadataShape = shapeOf(reflect.TypeFor[CSVMetadata]())

// shapeOf returns the shape of a type that consists of structs, lists, strings
// and the like.
func shapeOf(t reflect.Type) *shape {
	s := &shape{kind: t.Kind(), raw: t == reflect.TypeFor[json.RawMessage]()}
	switch {
	case s.raw:
	case s.kind == reflect.Slice:
		s.elem = shapeOf(t.Elem())
	case s.kind == reflect.Struct:
		for field := range t.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			of := shapeOf(field.Type)
			s.fields = append(s.fields, shapeField{
				shape: of, name: name, key: `"` + name + `":`,
				optional: options != "", zero: of.zeroJSON(),
			})
			s.names = append(s.names, name)
		}
	}
	return s
}

// zeroJSON returns the encoding of the shape's zero value by encoding/json.
func (s *shape) zeroJSON() string {
	switch {
	case s.raw, s.kind == reflect.Slice, s.kind == reflect.Map:
		return "null"
	case s.kind == reflect.String:
		return `""`
	case s.kind == reflect.Bool:
		return "false"
	case s.kind != reflect.Struct:
		return "0"
	}
	var members []string
	for _, field := range s.fields {
		if !field.optional {
			members = append(members, field.key+field.zero)
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// transcoder converts JSON to the JSON that encoding/json would produce after decoding it into a
// type, without decoding it. It gives up if that takes more than copying: null, keys in another
// case or repeated, and unnecessary escapes.
type transcoder struct {
	text []byte
	// checking skips work that only the output needs. Accepted text has the right shape.
	checking bool
	out      []byte
	ordered  []byte
	// members are the members of the enclosing structs, in out.
	members []textMember
}

// textMember is a field of a struct in the output.
type textMember struct {
	field int
	// begin is the start of the key, and value is the start of the value.
	begin, value, end int
}

// value transcodes the value at i. It returns the end of the value and whether it is empty in the
// sense of omitempty.
func (t *transcoder) value(i int, s *shape) (end int, empty bool) {
	if i >= len(t.text) {
		return jsontext.Broken, false
	}
	switch {
	case s.raw:
		return t.raw(i), false
	case s.kind == reflect.String:
		end = t.str(i)
		return end, end == i+len(`""`)
	case s.kind == reflect.Slice:
		return t.list(i, s.elem)
	case s.kind == reflect.Map:
		return t.stringMap(i)
	case s.kind == reflect.Struct:
		return t.structure(i, s), false
	case s.kind == reflect.Bool:
		return t.flag(i)
	default:
		return t.number(i)
	}
}

func (t *transcoder) structure(i int, s *shape) int {
	t.out = append(t.out, '{')
	first, base := len(t.members), len(t.out)
	i, ok := t.fields(i, s)
	if !ok {
		return jsontext.Broken
	}
	t.order(t.members[first:], base)
	t.members = t.members[:first]
	t.out = append(t.out, '}')
	return i
}

// fields transcodes the fields of the struct at i. It adds them to the members, in the order of the text.
func (t *transcoder) fields(i int, s *shape) (end int, ok bool) {
	if i >= len(t.text) || t.text[i] != '{' {
		return jsontext.Broken, false
	}
	var seen uint64
	i = jsontext.SkipSpace(t.text, i+1)
	for closed := i < len(t.text) && t.text[i] == '}'; !closed; {
		begin := i + 1
		keyEnd, value := jsontext.KeyEnd(t.text, i)
		if keyEnd == jsontext.Broken {
			return jsontext.Broken, false
		}
		switch field := jsontext.Find(s.names, t.text[begin:keyEnd-1]); {
		case field == jsontext.Unknown:
			scan := jsontext.Scanner{Text: t.text}
			i = scan.Value(value)
		case field == jsontext.Unsure, seen&(1<<field) != 0:
			return jsontext.Broken, false
		default:
			seen |= 1 << field
			i = t.field(value, field, &s.fields[field])
		}
		if i, closed = jsontext.Next(t.text, i, '}'); i == jsontext.Broken {
			return jsontext.Broken, false
		}
	}
	for field := range s.fields {
		if f := &s.fields[field]; !f.optional && seen&(1<<field) == 0 {
			t.member(field, f)
			t.out = append(t.out, f.zero...)
			t.members[len(t.members)-1].end = len(t.out)
		}
	}
	return i + 1, true
}

// field transcodes the value at i.
func (t *transcoder) field(i, field int, f *shapeField) int {
	before := len(t.out)
	t.member(field, f)
	last := len(t.members) - 1
	i, empty := t.value(i, f.shape)
	if f.optional && empty {
		t.out, t.members = t.out[:before], t.members[:last]
		return i
	}
	t.members[last].end = len(t.out)
	return i
}

// member begins a member.
func (t *transcoder) member(field int, f *shapeField) {
	if c := t.last(); c != '{' && c != 0 {
		t.out = append(t.out, ',')
	}
	begin := len(t.out)
	t.out = append(t.out, f.key...)
	t.members = append(t.members, textMember{field: field, begin: begin, value: len(t.out)})
}

// last returns the last byte of the output, or zero.
func (t *transcoder) last() byte {
	if len(t.out) == 0 {
		return 0
	}
	return t.out[len(t.out)-1]
}

// order sorts the members at the end of the output, from base, by the order of the fields. It uses
// insertion sort because there are few.
func (t *transcoder) order(members []textMember, base int) {
	sorted := true
	for i := 1; i < len(members); i++ {
		for j := i; j > 0 && members[j].field < members[j-1].field; j-- {
			members[j], members[j-1] = members[j-1], members[j]
			sorted = false
		}
	}
	if sorted || t.checking {
		return
	}
	t.ordered = t.ordered[:0]
	for i, m := range members {
		if i > 0 {
			t.ordered = append(t.ordered, ',')
		}
		t.ordered = append(t.ordered, t.out[m.begin:m.end]...)
	}
	t.out = append(t.out[:base], t.ordered...)
}

func (t *transcoder) list(i int, elem *shape) (end int, empty bool) {
	if t.text[i] != '[' {
		return jsontext.Broken, false
	}
	t.out = append(t.out, '[')
	i = jsontext.SkipSpace(t.text, i+1)
	empty = true
	for closed := i < len(t.text) && t.text[i] == ']'; !closed; empty = false {
		if !empty {
			t.out = append(t.out, ',')
		}
		if i, _ = t.value(i, elem); i == jsontext.Broken {
			return jsontext.Broken, false
		}
		if i, closed = jsontext.Next(t.text, i, ']'); i == jsontext.Broken {
			return jsontext.Broken, false
		}
	}
	t.out = append(t.out, ']')
	return i + 1, empty
}

// stringMap transcodes an object of strings with sorted keys.
func (t *transcoder) stringMap(i int) (end int, empty bool) {
	if t.text[i] != '{' {
		return jsontext.Broken, false
	}
	t.out = append(t.out, '{')
	i = jsontext.SkipSpace(t.text, i+1)
	empty = true
	var previous []byte
	for closed := i < len(t.text) && t.text[i] == '}'; !closed; empty = false {
		keyEnd, value := jsontext.KeyEnd(t.text, i)
		if keyEnd == jsontext.Broken {
			return jsontext.Broken, false
		}
		key := t.text[i+1 : keyEnd-1]
		if bytes.IndexByte(key, '\\') >= 0 || (!empty && bytes.Compare(previous, key) >= 0) {
			return jsontext.Broken, false
		}
		previous = key
		if !empty {
			t.out = append(t.out, ',')
		}
		if t.str(i) == jsontext.Broken {
			return jsontext.Broken, false
		}
		t.out = append(t.out, ':')
		if i = t.str(value); i == jsontext.Broken {
			return jsontext.Broken, false
		}
		if i, closed = jsontext.Next(t.text, i, '}'); i == jsontext.Broken {
			return jsontext.Broken, false
		}
	}
	t.out = append(t.out, '}')
	return i + 1, empty
}

func (t *transcoder) flag(i int) (end int, empty bool) {
	end = jsontext.WordEnd(t.text, i, "true")
	if end == jsontext.Broken {
		end, empty = jsontext.WordEnd(t.text, i, "false"), true
	}
	if end != jsontext.Broken {
		t.out = append(t.out, t.text[i:end]...)
	}
	return end, empty
}

// maxPlainDigits is a length of numbers that always fit into an int32.
const maxPlainDigits = 9

// number transcodes a nonnegative integer.
func (t *transcoder) number(i int) (end int, empty bool) {
	end = jsontext.NumberEnd(t.text, i)
	if end == jsontext.Broken || end-i > maxPlainDigits || bytes.ContainsAny(t.text[i:end], "-.eE") {
		return jsontext.Broken, false
	}
	t.out = append(t.out, t.text[i:end]...)
	return end, t.text[i] == '0'
}

// raw transcodes a value of any shape.
func (t *transcoder) raw(i int) int {
	scan := jsontext.Scanner{Text: t.text}
	end := scan.Value(i)
	if end == jsontext.Broken || t.checking {
		return end
	}
	var compact, escaped bytes.Buffer
	if json.Compact(&compact, t.text[i:end]) != nil {
		return jsontext.Broken
	}
	json.HTMLEscape(&escaped, compact.Bytes())
	t.out = append(t.out, escaped.Bytes()...)
	return end
}

// str transcodes the string at i.
func (t *transcoder) str(i int) int {
	if i >= len(t.text) || t.text[i] != '"' {
		return jsontext.Broken
	}
	if t.checking {
		return jsontext.StringEnd(t.text, i)
	}
	// The text before from is already in the output.
	from, begin := i, i
	for i++; ; i++ {
		i = plainEnd(t.text, i)
		if i >= len(t.text) {
			return jsontext.Broken
		}
		switch c := t.text[i]; c {
		case '"':
			if jsontext.SeparatorAt(t.text[begin:i]) >= 0 {
				return jsontext.Broken
			}
			t.out = append(t.out, t.text[from:i+1]...)
			return i + 1
		case '<', '>', '&':
			t.out = append(append(t.out, t.text[from:i]...), `\u00`...)
			t.out = append(t.out, "23"[c>>4&1], "0123456789abcdef"[c&0xf])
			from = i + 1
		case '\\':
			if !neededEscape(t.text[i:]) {
				return jsontext.Broken
			}
			// The second character may be a quote.
			i++
		default:
			return jsontext.Broken
		}
	}
}

// neededEscape reports whether text begins with an escape sequence that an encoder would write.
func neededEscape(text []byte) bool {
	if len(text) < 2 {
		return false
	}
	switch text[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		r, ok := jsontext.HexRune(text, 0)
		if !ok || bytes.ContainsAny(text[2:6], "ABCDEF") {
			return false
		}
		return r == 0x2028 || r == 0x2029 || (r < ' ' && !strings.ContainsRune("\b\f\n\r\t", r))
	default:
		return false
	}
}

// plainEnd returns the first position from i with a quote, a backslash, a control character or a
// character that is escaped for HTML. It checks eight bytes at a time.
func plainEnd(text []byte, i int) int {
	const (
		low  = 0x0101010101010101
		high = 0x8080808080808080
	)
	for i+8 <= len(text) {
		w := binary.LittleEndian.Uint64(text[i:])
		quote, backslash, ampersand := w^low*'"', w^low*'\\', w^low*'&'
		// '<' and '>' differ in one bit.
		angle := (w | low*2) ^ low*'>'
		found := (quote-low)&^quote | (backslash-low)&^backslash | (ampersand-low)&^ampersand |
			(angle-low)&^angle | (w-low*' ')&^w
		if found &= high; found != 0 {
			return i + bits.TrailingZeros64(found)>>3
		}
		i += 8
	}
	for i < len(text) && text[i] >= ' ' && !isMarked(text[i]) {
		i++
	}
	return i
}

func isMarked(c byte) bool {
	return c == '"' || c == '\\' || c == '&' || c == '<' || c == '>'
}
