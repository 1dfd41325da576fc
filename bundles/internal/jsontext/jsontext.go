// Package jsontext scans JSON text without decoding it, by the rules of encoding/json.
//
// It may refuse text that encoding/json accepts, but never accepts text that encoding/json refuses.
// Callers pass refused text to encoding/json.
package jsontext

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
)

// Broken is the position that stands for refused text.
const Broken = -1

// MaxNesting is the largest nesting that encoding/json accepts.
const MaxNesting = 10000

// Scanner scans values and measures their nesting.
type Scanner struct {
	Text []byte
	// Depth is the current nesting and Deepest the largest so far.
	Depth, Deepest int
}

// Valid reports whether a text is one JSON value.
func Valid(text []byte) bool {
	s := Scanner{Text: text}
	end := s.Value(SkipSpace(text, 0))
	return end != Broken && SkipSpace(text, end) == len(text)
}

// Value returns the end of the value that begins at i, which may be the end of
// the text.
func (s *Scanner) Value(i int) int {
	if i >= len(s.Text) {
		return Broken
	}
	switch s.Text[i] {
	case '"':
		return StringEnd(s.Text, i)
	case '{':
		return s.object(i)
	case '[':
		return s.list(i)
	case 't':
		return WordEnd(s.Text, i, "true")
	case 'f':
		return WordEnd(s.Text, i, "false")
	case 'n':
		return WordEnd(s.Text, i, "null")
	default:
		return NumberEnd(s.Text, i)
	}
}

func (s *Scanner) enter() bool {
	s.Depth++
	s.Deepest = max(s.Deepest, s.Depth)
	return s.Depth <= MaxNesting
}

func (s *Scanner) object(i int) int {
	if !s.enter() {
		return Broken
	}
	i = SkipSpace(s.Text, i+1)
	if i < len(s.Text) && s.Text[i] == '}' {
		s.Depth--
		return i + 1
	}
	for {
		if _, i = KeyEnd(s.Text, i); i == Broken {
			return Broken
		}
		if i = s.Value(i); i == Broken {
			return Broken
		}
		i = SkipSpace(s.Text, i)
		if i >= len(s.Text) {
			return Broken
		}
		switch s.Text[i] {
		case ',':
			i = SkipSpace(s.Text, i+1)
		case '}':
			s.Depth--
			return i + 1
		default:
			return Broken
		}
	}
}

func (s *Scanner) list(i int) int {
	if !s.enter() {
		return Broken
	}
	i = SkipSpace(s.Text, i+1)
	if i < len(s.Text) && s.Text[i] == ']' {
		s.Depth--
		return i + 1
	}
	for {
		if i = s.Value(i); i == Broken {
			return Broken
		}
		i = SkipSpace(s.Text, i)
		if i >= len(s.Text) {
			return Broken
		}
		switch s.Text[i] {
		case ',':
			i = SkipSpace(s.Text, i+1)
		case ']':
			s.Depth--
			return i + 1
		default:
			return Broken
		}
	}
}

// KeyEnd returns the end of the key that begins at i and the start of its value.
func KeyEnd(text []byte, i int) (end, value int) {
	if i >= len(text) || text[i] != '"' {
		return Broken, Broken
	}
	if end = StringEnd(text, i); end == Broken {
		return Broken, Broken
	}
	i = SkipSpace(text, end)
	if i >= len(text) || text[i] != ':' {
		return Broken, Broken
	}
	return end, SkipSpace(text, i+1)
}

// SkipSpace returns the first position from i that is not white space. It is fast for long runs,
// which indented text has.
func SkipSpace(text []byte, i int) int {
	const spaces = 0x2020202020202020
	if i < len(text) && text[i] > ' ' {
		return i
	}
	for i < len(text) {
		switch text[i] {
		case ' ', '\n', '\t', '\r':
			i++
		default:
			return i
		}
		for i+8 <= len(text) {
			if diff := binary.LittleEndian.Uint64(text[i:]) ^ spaces; diff != 0 {
				i += bits.TrailingZeros64(diff) >> 3
				break
			}
			i += 8
		}
	}
	return i
}

// StringEnd returns the end of the string whose opening quote is at i.
func StringEnd(text []byte, i int) int {
	for i++; ; {
		i = PlainEnd(text, i)
		if i >= len(text) {
			return Broken
		}
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			if i = EscapeEnd(text, i); i == Broken {
				return Broken
			}
		default:
			return Broken
		}
	}
}

// PlainEnd returns the first position from i with a quote, a backslash or a control character. It
// checks eight bytes at a time.
func PlainEnd(text []byte, i int) int {
	const (
		low       = 0x0101010101010101
		high      = 0x8080808080808080
		quote     = low * '"'
		backslash = low * '\\'
		space     = low * ' '
	)
	for i+8 <= len(text) {
		w := binary.LittleEndian.Uint64(text[i:])
		q, b := w^quote, w^backslash
		// The highest bit of a byte is set if the byte is less than what is subtracted. The lowest
		// such bit is exact.
		if found := ((q-low)&^q | (b-low)&^b | (w-space)&^w) & high; found != 0 {
			return i + bits.TrailingZeros64(found)>>3
		}
		i += 8
	}
	for i < len(text) && text[i] != '"' && text[i] != '\\' && text[i] >= ' ' {
		i++
	}
	return i
}

// SeparatorAt returns the position of the first unescaped line or paragraph separator, U+2028 or
// U+2029, or -1. Encoders escape them.
func SeparatorAt(text []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(text[from:], 0xe2)
		if i < 0 {
			return -1
		}
		i += from
		if i+2 < len(text) && text[i+1] == 0x80 && text[i+2]&^1 == 0xa8 {
			return i
		}
		from = i + 1
	}
}

// EscapeEnd returns the end of the escape sequence whose backslash is at i.
func EscapeEnd(text []byte, i int) int {
	if i+1 >= len(text) {
		return Broken
	}
	switch text[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if _, ok := HexRune(text, i); ok {
			return i + 6
		}
	}
	return Broken
}

// HexRune decodes the \uXXXX at i.
func HexRune(text []byte, i int) (rune, bool) {
	if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range text[i+2 : i+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// WordEnd returns the end of the expected word at i.
func WordEnd(text []byte, i int, word string) int {
	if end := i + len(word); end <= len(text) && string(text[i:end]) == word {
		return end
	}
	return Broken
}

// SafeDigits is the length of a number that float64 neither rounds nor refuses.
const SafeDigits = 15

// NumberEnd returns the end of the number that begins at i. It refuses numbers beyond the range of float64.
func NumberEnd(text []byte, i int) int {
	begin := i
	if i < len(text) && text[i] == '-' {
		i++
	}
	whole := digitsEnd(text, i)
	if whole == Broken || (text[i] == '0' && whole > i+1) {
		return Broken
	}
	end := exponentEnd(text, fractionEnd(text, whole))
	if end == Broken || (end == whole && whole-i <= SafeDigits) {
		return end
	}
	if _, err := strconv.ParseFloat(string(text[begin:end]), 64); err != nil {
		return Broken
	}
	return end
}

// fractionEnd returns the end of the fraction that may follow a number's whole
// part.
func fractionEnd(text []byte, i int) int {
	if i >= len(text) || text[i] != '.' {
		return i
	}
	return digitsEnd(text, i+1)
}

// exponentEnd returns the end of the exponent that may follow a fraction.
func exponentEnd(text []byte, i int) int {
	if i == Broken || i >= len(text) || text[i]|0x20 != 'e' {
		return i
	}
	i++
	if i < len(text) && (text[i] == '+' || text[i] == '-') {
		i++
	}
	return digitsEnd(text, i)
}

// digitsEnd returns the end of one or more digits at i.
func digitsEnd(text []byte, i int) int {
	end := i
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	if end == i {
		return Broken
	}
	return end
}

// Unsure and Unknown are the results of Find for other keys.
const (
	Unknown = -1
	// Unsure means that encoding/json may match the key with a known one.
	Unsure = -2
)

// Find returns the index of a key, without its quotes, in known.
func Find(known []string, key []byte) int {
	for i := range known {
		if known[i] == string(key) {
			return i
		}
	}
	if !PlainASCII(key) {
		return Unsure
	}
	for i := range known {
		if len(key) == len(known[i]) && strings.EqualFold(string(key), known[i]) {
			return Unsure
		}
	}
	return Unknown
}

// PlainASCII reports whether a string consists of ASCII characters without escapes.
func PlainASCII(text []byte) bool {
	for _, c := range text {
		if c >= 0x80 || c == '\\' {
			return false
		}
	}
	return true
}

// TextField returns the string in a field of an object, which is empty if there is no such field.
// sure is false if the text is not an object or only encoding/json can decode the field.
func TextField(text []byte, name string) (value string, sure bool) {
	i := ObjectStart(text)
	if i == Broken {
		return "", false
	}
	names, found := []string{name}, false
	for closed := i < len(text) && text[i] == '}'; !closed; {
		keyEnd, begin := KeyEnd(text, i)
		if keyEnd == Broken {
			return "", false
		}
		scan := Scanner{Text: text, Depth: 1}
		end := scan.Value(begin)
		if end == Broken {
			return "", false
		}
		switch Find(names, text[i+1:keyEnd-1]) {
		case Unsure:
			return "", false
		case Unknown:
		default:
			inner, plain := PlainString(text[begin:end])
			if found || !plain {
				return "", false
			}
			value, found = string(inner), true
		}
		if i, closed = Next(text, end, '}'); i == Broken {
			return "", false
		}
	}
	return value, SkipSpace(text, i+1) == len(text)
}

// ObjectStart returns the position of the first key of an object, or of the bracket of an empty one.
func ObjectStart(text []byte) int {
	i := SkipSpace(text, 0)
	if i >= len(text) || text[i] != '{' {
		return Broken
	}
	return SkipSpace(text, i+1)
}

// PlainString returns the text of a string without escapes.
func PlainString(value []byte) (text []byte, ok bool) {
	if len(value) < len(`""`) || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return nil, false
	}
	return value[1 : len(value)-1], true
}

// Next returns the position after the comma that follows a value ending at i, or of the closing bracket.
func Next(text []byte, i int, bracket byte) (at int, closed bool) {
	if i == Broken {
		return Broken, false
	}
	i = SkipSpace(text, i)
	switch {
	case i >= len(text):
		return Broken, false
	case text[i] == ',':
		return SkipSpace(text, i+1), false
	case text[i] == bracket:
		return i, true
	default:
		return Broken, false
	}
}
