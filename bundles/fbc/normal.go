package fbc

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles/internal/jsontext"
)

// normalizer writes JSON values in the form of [normalize] without decoding them: compact, keys
// sorted at every depth, only required characters escaped, and numbers as float64.
//
// It gives up on rare input: keys that are repeated or contain escapes.
type normalizer struct {
	text jsonText
	out  []byte
	// members are the members of the enclosing objects, in out.
	members []member
	// sorted is the buffer for sorting members.
	sorted []byte
	depth  int
}

// member is one "key":value of an object in the output.
type member struct {
	// begin is the key's opening quote, key is the end of the key, and end is the end of the value.
	begin, key, end int
}

// value appends the value that begins at i to out and returns its end in the
// text.
func (n *normalizer) value(i int) int {
	if i >= len(n.text) {
		return jsontext.Broken
	}
	begin := i
	switch n.text[i] {
	case '"':
		return n.str(i)
	case '{':
		return n.object(i)
	case '[':
		return n.list(i)
	case 't':
		i = jsontext.WordEnd(n.text, i, "true")
	case 'f':
		i = jsontext.WordEnd(n.text, i, "false")
	case 'n':
		i = jsontext.WordEnd(n.text, i, "null")
	default:
		return n.number(i)
	}
	if i != jsontext.Broken {
		n.out = append(n.out, n.text[begin:i]...)
	}
	return i
}

func (n *normalizer) object(i int) int {
	n.depth++
	if n.depth > jsontext.MaxNesting {
		return jsontext.Broken
	}
	n.out = append(n.out, '{')
	i = jsontext.SkipSpace(n.text, i+1)
	if i < len(n.text) && n.text[i] == '}' {
		n.out = append(n.out, '}')
		n.depth--
		return i + 1
	}
	first := len(n.members)
	for inOrder := true; ; {
		m, end := n.member(i)
		var closed bool
		if i, closed = jsontext.Next(n.text, end, '}'); i == jsontext.Broken {
			return jsontext.Broken
		}
		inOrder = inOrder && (len(n.members) == first || n.before(n.members[len(n.members)-1], m))
		n.members = append(n.members, m)
		if !closed {
			n.out = append(n.out, ',')
			continue
		}
		if !inOrder && !n.sort(n.members[first:]) {
			return jsontext.Broken
		}
		n.out = append(n.out, '}')
		n.members = n.members[:first]
		n.depth--
		return i + 1
	}
}

// member appends a member of an object and returns its end in the text.
func (n *normalizer) member(i int) (m member, end int) {
	m.begin = len(n.out)
	value := n.key(i)
	if value == jsontext.Broken {
		return m, jsontext.Broken
	}
	m.key = len(n.out) - 1
	end = n.value(value)
	m.end = len(n.out)
	return m, end
}

// key appends a key with its colon and returns the start of its value.
func (n *normalizer) key(i int) int {
	end, value := jsontext.KeyEnd(n.text, i)
	if end == jsontext.Broken {
		return jsontext.Broken
	}
	key := n.text[i:end]
	if bytes.IndexByte(key, '\\') >= 0 || jsontext.SeparatorAt(key) >= 0 {
		return jsontext.Broken
	}
	n.out = append(append(n.out, key...), ':')
	return value
}

// keyOf returns the key of a member without its quotes.
func (n *normalizer) keyOf(m member) []byte { return n.out[m.begin+1 : m.key-1] }

func (n *normalizer) before(a, b member) bool { return bytes.Compare(n.keyOf(a), n.keyOf(b)) < 0 }

// sort sorts the members of one object at the end of the output. It reports whether all keys are different.
func (n *normalizer) sort(members []member) bool {
	base := members[0].begin
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(n.keyOf(a), n.keyOf(b)) })
	n.sorted = n.sorted[:0]
	for i, m := range members {
		if i > 0 {
			if !n.before(members[i-1], m) {
				return false
			}
			n.sorted = append(n.sorted, ',')
		}
		n.sorted = append(n.sorted, n.out[m.begin:m.end]...)
	}
	n.out = append(n.out[:base], n.sorted...)
	return true
}

func (n *normalizer) list(i int) int {
	n.depth++
	if n.depth > jsontext.MaxNesting {
		return jsontext.Broken
	}
	n.out = append(n.out, '[')
	i = jsontext.SkipSpace(n.text, i+1)
	if i < len(n.text) && n.text[i] == ']' {
		n.out = append(n.out, ']')
		n.depth--
		return i + 1
	}
	for {
		if i = n.value(i); i == jsontext.Broken {
			return jsontext.Broken
		}
		i = jsontext.SkipSpace(n.text, i)
		if i >= len(n.text) {
			return jsontext.Broken
		}
		switch n.text[i] {
		case ',':
			n.out = append(n.out, ',')
			i = jsontext.SkipSpace(n.text, i+1)
		case ']':
			n.out = append(n.out, ']')
			n.depth--
			return i + 1
		default:
			return jsontext.Broken
		}
	}
}

// str appends the string whose opening quote is at i.
func (n *normalizer) str(i int) int {
	// The text before from is already in the output.
	from := i
	for i++; ; {
		i = jsontext.PlainEnd(n.text, i)
		if i >= len(n.text) {
			return jsontext.Broken
		}
		switch n.text[i] {
		case '"':
			n.plain(n.text[from : i+1])
			return i + 1
		case '\\':
		default:
			return jsontext.Broken
		}
		end := jsontext.EscapeEnd(n.text, i)
		if end == jsontext.Broken {
			return jsontext.Broken
		}
		if c := n.text[i+1]; c == 'u' || c == '/' {
			n.plain(n.text[from:i])
			end = n.escape(i)
			from = end
		}
		i = end
	}
}

// plain appends a part of a string without unnecessary escapes.
func (n *normalizer) plain(part []byte) {
	for {
		at := jsontext.SeparatorAt(part)
		if at < 0 {
			n.out = append(n.out, part...)
			return
		}
		n.out = append(n.out, part[:at]...)
		n.out = appendRune(n.out, rune(0x2000)+rune(part[at+2]&0x3f))
		part = part[at+3:]
	}
}

// escape appends the character of the well-formed escape sequence at i and returns its end.
func (n *normalizer) escape(i int) int {
	r, ok := jsontext.HexRune(n.text, i)
	if !ok {
		n.out = append(n.out, n.text[i+1])
		return i + 2
	}
	i += 6
	if utf16.IsSurrogate(r) {
		second, _ := jsontext.HexRune(n.text, i)
		if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
			i += 6
		}
	}
	n.out = appendRune(n.out, r)
	return i
}

const hexDigits = "0123456789abcdef"

// appendRune appends a character in the form of a normalized string.
func appendRune(out []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(out, '\\', byte(r))
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	case 0x2028, 0x2029:
		return append(append(out, `\u202`...), hexDigits[r&0xf])
	}
	if r < ' ' {
		return append(append(out, `\u00`...), hexDigits[r>>4], hexDigits[r&0xf])
	}
	return utf8.AppendRune(out, r)
}

// number appends the number at i.
func (n *normalizer) number(i int) int {
	end := jsontext.NumberEnd(n.text, i)
	if end == jsontext.Broken {
		return jsontext.Broken
	}
	text := n.text[i:end]
	if len(text) <= jsontext.SafeDigits && !bytes.ContainsAny(text, ".eE") {
		n.out = append(n.out, text...)
		return end
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return jsontext.Broken
	}
	n.out = appendFloat(n.out, f)
	return end
}

// appendFloat appends a number in the format of encoding/json.
func appendFloat(out []byte, f float64) []byte {
	magnitude := math.Abs(f)
	if magnitude == 0 || (magnitude >= 1e-6 && magnitude < 1e21) {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	out = strconv.AppendFloat(out, f, 'e', -1, 64)
	if n := len(out); n >= 4 && out[n-4] == 'e' && (out[n-3] == '-' || out[n-3] == '+') && out[n-2] == '0' {
		out = append(out[:n-2], out[n-1])
	}
	return out
}
