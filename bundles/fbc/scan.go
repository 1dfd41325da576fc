package fbc

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// Scanning returns where in the text a value ends, or broken.
const broken = -1

// maxNesting is the nesting up to which encoding/json reads a text.
const maxNesting = 10000

// scanner checks that a text is JSON, by the rules of encoding/json and without
// decoding it. Whatever it does not accept is left to encoding/json to judge:
// it may be right, it only has to be rare.
type scanner struct {
	text []byte
	// depth is the nesting at present and deepest the largest so far.
	depth, deepest int
}

// value returns the end of the value that begins at i, which may be the end of
// the text.
func (s *scanner) value(i int) int {
	if i >= len(s.text) {
		return broken
	}
	switch s.text[i] {
	case '"':
		return scanString(s.text, i)
	case '{':
		return s.object(i)
	case '[':
		return s.list(i)
	case 't':
		return scanWord(s.text, i, "true")
	case 'f':
		return scanWord(s.text, i, "false")
	case 'n':
		return scanWord(s.text, i, "null")
	default:
		return scanNumber(s.text, i)
	}
}

func (s *scanner) enter() bool {
	s.depth++
	s.deepest = max(s.deepest, s.depth)
	return s.depth <= maxNesting
}

func (s *scanner) object(i int) int {
	if !s.enter() {
		return broken
	}
	i = skipSpace(s.text, i+1)
	if i < len(s.text) && s.text[i] == '}' {
		s.depth--
		return i + 1
	}
	for {
		if _, i = scanKey(s.text, i); i == broken {
			return broken
		}
		if i = s.value(i); i == broken {
			return broken
		}
		i = skipSpace(s.text, i)
		if i >= len(s.text) {
			return broken
		}
		switch s.text[i] {
		case ',':
			i = skipSpace(s.text, i+1)
		case '}':
			s.depth--
			return i + 1
		default:
			return broken
		}
	}
}

func (s *scanner) list(i int) int {
	if !s.enter() {
		return broken
	}
	i = skipSpace(s.text, i+1)
	if i < len(s.text) && s.text[i] == ']' {
		s.depth--
		return i + 1
	}
	for {
		if i = s.value(i); i == broken {
			return broken
		}
		i = skipSpace(s.text, i)
		if i >= len(s.text) {
			return broken
		}
		switch s.text[i] {
		case ',':
			i = skipSpace(s.text, i+1)
		case ']':
			s.depth--
			return i + 1
		default:
			return broken
		}
	}
}

// scanKey returns the end of the key that begins at i, and where its value
// begins.
func scanKey(text []byte, i int) (end, value int) {
	if i >= len(text) || text[i] != '"' {
		return broken, broken
	}
	if end = scanString(text, i); end == broken {
		return broken, broken
	}
	i = skipSpace(text, end)
	if i >= len(text) || text[i] != ':' {
		return broken, broken
	}
	return end, skipSpace(text, i+1)
}

// skipSpace returns the first place from i on that is not white space. Indented
// text is mostly that, in runs.
func skipSpace(text []byte, i int) int {
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

// scanString returns the end of the string whose opening quote is at i.
func scanString(text []byte, i int) int {
	for i++; ; {
		i = plainEnd(text, i)
		if i >= len(text) {
			return broken
		}
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			if i = scanEscape(text, i); i == broken {
				return broken
			}
		default:
			return broken
		}
	}
}

// plainEnd returns the first place from i on that has a quote, a backslash or a
// control character. It looks at eight bytes at a time.
func plainEnd(text []byte, i int) int {
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
		// A byte's highest bit is set where the byte below is less than what
		// is subtracted; the lowest of these is exact.
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

// scanEscape returns the end of the escape sequence whose backslash is at i.
func scanEscape(text []byte, i int) int {
	if i+1 >= len(text) {
		return broken
	}
	switch text[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if _, ok := hexRune(text, i); ok {
			return i + 6
		}
	}
	return broken
}

// hexRune reads the \uXXXX at i.
func hexRune(text []byte, i int) (rune, bool) {
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

func scanWord(text []byte, i int, word string) int {
	if end := i + len(word); end <= len(text) && string(text[i:end]) == word {
		return end
	}
	return broken
}

// safeDigits is the length of a number that no float64 rounds or refuses.
const safeDigits = 15

// scanNumber returns the end of the number that begins at i. A number beyond
// the range of float64 is not accepted.
func scanNumber(text []byte, i int) int {
	begin := i
	if i < len(text) && text[i] == '-' {
		i++
	}
	digits := i
	i = skipDigits(text, i)
	if i == digits || (text[digits] == '0' && i > digits+1) {
		return broken
	}
	simple := i-digits <= safeDigits
	if i < len(text) && text[i] == '.' {
		fraction := i + 1
		if i = skipDigits(text, fraction); i == fraction {
			return broken
		}
		simple = false
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		exponent := i
		if i = skipDigits(text, exponent); i == exponent {
			return broken
		}
		simple = false
	}
	if simple {
		return i
	}
	if _, err := strconv.ParseFloat(string(text[begin:i]), 64); err != nil {
		return broken
	}
	return i
}

func skipDigits(text []byte, i int) int {
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	return i
}
