// Package values estimates the number of values in a YAML or JSON text before it is parsed. A
// parser takes a hundred times as much memory as a text of many short values.
package values

import "bytes"

// Max is the largest number of values in an object. Objects that the API server can store have far fewer.
const Max = 400_000

// Count returns an upper bound for the number of entries of mappings and sequences in a text, to
// within a factor of two. It counts everything that a parser may take for the beginning of an
// entry, even in strings:
//
//   - the line breaks of YAML: LF, CR, CR LF, U+0085, U+2028 and U+2029;
//   - the indicators of flow collections: comma, bracket and brace;
//   - a hyphen or a question mark before a blank that does not begin a line.
//
// In a text with a UTF-16 mark, each unit counts.
func Count(text []byte) int {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return len(text) / 2
	}
	count := 0
	// The line has only had blanks so far.
	begins := true
	for i, c := range text {
		kind := kinds[c]
		if kind == other {
			begins = false
			continue
		}
		if kind == blank {
			continue
		}
		switch entry, ends := kind.at(text, i, begins); {
		case ends:
			count++
			begins = true
		case entry:
			count++
			begins = false
		default:
			begins = false
		}
	}
	return count
}

// kind is the set of possible meanings of a byte.
type kind uint8

const (
	other kind = iota
	blank
	lineFeed
	carriageReturn
	flow
	mark
	nextLine
	separator
)

var kinds = func() (kinds [256]kind) {
	kinds[' '], kinds['\t'] = blank, blank
	// Continuation bytes of a character change nothing.
	for c := 0x80; c < 0xc0; c++ {
		kinds[c] = blank
	}
	kinds['\n'], kinds['\r'] = lineFeed, carriageReturn
	for _, c := range ",[{" {
		kinds[c] = flow
	}
	kinds['-'], kinds['?'] = mark, mark
	kinds[0xc2], kinds[0xe2] = nextLine, separator
	return kinds
}()

// at reports whether an entry or a line break is at a position of a text.
func (k kind) at(text []byte, i int, begins bool) (entry, ends bool) {
	rest := text[i+1:]
	switch k {
	case flow:
		return true, false
	case mark:
		return !begins && (len(rest) == 0 || isBlank(rest[0])), false
	default:
		return false, k.breaks(rest)
	}
}

// breaks reports whether a byte begins a line break, given the following bytes.
func (k kind) breaks(rest []byte) bool {
	switch k {
	case lineFeed:
		return true
	case carriageReturn:
		// A carriage return and a line feed are one line break.
		return len(rest) == 0 || rest[0] != '\n'
	case nextLine:
		return len(rest) > 0 && rest[0] == 0x85
	case separator:
		return bytes.HasPrefix(rest, []byte{0x80, 0xa8}) || bytes.HasPrefix(rest, []byte{0x80, 0xa9})
	default:
		return false
	}
}

// isBlank reports whether an indicator may precede a byte. The first byte of a line break beyond ASCII counts.
func isBlank(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', 0, 0xc2, 0xe2:
		return true
	default:
		return false
	}
}
