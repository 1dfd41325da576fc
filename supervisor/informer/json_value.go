package informer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// space holds the characters that JSON allows between values.
const space = " \t\r\n"

// valueEnd finds the end of a JSON value that arrives in parts. It does not validate the value.
type valueEnd struct {
	depth                  int
	begun, quoted, escaped bool
}

// add returns the position in the next part at which the value ends; -1 if it continues.
func (v *valueEnd) add(part []byte) int {
	for i := 0; i < len(part); i++ {
		if v.quoted {
			n := v.stringEnd(part[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
			if v.depth == 0 {
				return i + 1
			}
			continue
		}
		switch c := part[i]; c {
		case '"':
			v.quoted, v.begun = true, true
		case '{', '[':
			v.depth++
			v.begun = true
		case '}', ']':
			if end := v.closeBracket(i); end >= 0 {
				return end
			}
		case ',', ' ', '\t', '\r', '\n':
			if v.begun && v.depth == 0 {
				return i
			}
		default:
			v.begun = true
		}
	}
	return -1
}

// closeBracket returns the position at which the value ends if a bracket closes there; -1 if it continues. A
// bracket that the value has not opened is not part of it.
func (v *valueEnd) closeBracket(at int) int {
	if v.depth == 0 {
		return at
	}
	v.depth--
	if v.depth == 0 {
		return at + 1
	}
	return -1
}

// stringEnd returns the position in a part at which the current string ends; -1 if it continues.
func (v *valueEnd) stringEnd(part []byte) int {
	for i := 0; i < len(part); i++ {
		if v.escaped {
			v.escaped = false
			continue
		}
		n := bytes.IndexAny(part[i:], `"\`)
		if n < 0 {
			return -1
		}
		i += n
		if part[i] == '"' {
			v.quoted = false
			return i + 1
		}
		v.escaped = true
	}
	return -1
}

var errNoValue = errors.New("an event of a watch begins with a closing bracket")

// readValue reads a JSON value from a stream, without the space before it.
func readValue(from *bufio.Reader) ([]byte, error) {
	var (
		end   valueEnd
		value []byte
	)
	for {
		if _, err := from.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && len(value) > 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, err //nolint:wrapcheck // client-go looks at it
		}
		part, err := from.Peek(from.Buffered())
		if err != nil {
			return nil, err //nolint:wrapcheck // client-go looks at it
		}
		n := end.add(part)
		whole := n >= 0
		if !whole {
			n = len(part)
		}
		value = append(value, part[:n]...)
		if _, err := from.Discard(n); err != nil {
			return nil, err //nolint:wrapcheck // client-go looks at it
		}
		value = bytes.TrimLeft(value, space)
		if whole && len(value) == 0 {
			return nil, errNoValue
		}
		if whole {
			return value, nil
		}
		if len(value) > maxReduced {
			return nil, fmt.Errorf("an event of a watch has more than %d MiB", maxReduced>>20)
		}
	}
}

// cutConfig replaces the configuration of a Subscription by null, and reports whether it did. path has the keys
// from the beginning of the text to the configuration. It does so if the configuration is larger than an event
// that is not reduced. Decoded, such a configuration exceeds the bounds of Transform.
func cutConfig(text []byte, path ...string) (short []byte, cut bool) {
	begin, end := 0, len(text)
	for _, key := range path {
		begin, end = member(text[:end], begin, key)
		if begin < 0 {
			return text, false
		}
	}
	if end-begin <= maxFrame {
		return text, false
	}
	return slices.Concat(text[:begin], []byte("null"), text[end:]), true
}

// member returns the positions at which the value of a key begins and ends in the object that begins in text at
// a position; -1 for both if there is none.
func member(text []byte, at int, key string) (begin, end int) {
	if at = skipSpace(text, at); at == len(text) || text[at] != '{' {
		return -1, -1
	}
	for at++; ; {
		at = skipSpace(text, at)
		n := new(valueEnd).add(text[at:])
		if n < 2 || text[at] != '"' {
			return -1, -1
		}
		name := text[at+1 : at+n-1]
		if at = skipSpace(text, at+n); at == len(text) || text[at] != ':' {
			return -1, -1
		}
		at = skipSpace(text, at+1)
		if n = new(valueEnd).add(text[at:]); n < 1 {
			return -1, -1
		}
		if string(name) == key {
			return at, at + n
		}
		if at = skipSpace(text, at+n); at == len(text) || text[at] != ',' {
			return -1, -1
		}
		at++
	}
}

// skipSpace returns the position after the space that begins at a position.
func skipSpace(text []byte, at int) int {
	return len(text) - len(bytes.TrimLeft(text[at:], space))
}
