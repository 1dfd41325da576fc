package bundles

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuoted is the part of a foreign value that a message repeats, in bytes.
const maxQuoted = 200

// clip shortens a value for a message.
func clip(text string) string { return Clip(text, maxQuoted) }

const ellipsis = "…"

// Clip shortens a text to at most limit bytes, including the ellipsis at its end. It does not split characters.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := max(0, limit-len(ellipsis))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// Count returns a number with its noun, such as "1 package", "2 packages" and "2 entries".
func Count(n int, noun string) string {
	if n != 1 {
		if stem, is := strings.CutSuffix(noun, "ry"); is {
			noun = stem + "rie"
		}
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// OneLine returns foreign text as one line without control characters. Line ends and tabs become spaces.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text)
}

// Quote returns a value from a catalog for messages: quoted, with control characters escaped, and
// shortened to 200 bytes.
func Quote(text string) string { return strconv.Quote(clip(text)) }

var errWrongType = errors.New("wrong type")

// DescribeJSON rewords an error of encoding/json for authors of catalogs. It names the expected
// JSON instead of a Go type. It returns other errors unchanged.
func DescribeJSON(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	field := "it"
	if wrong.Field != "" {
		field = "field " + Quote(wrong.Field)
	}
	return fmt.Errorf("%w: %s must be %s, found %s", errWrongType, field, expected(wrong.Type), clip(wrong.Value))
}

// expected returns the name of the JSON type for a Go type.
func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a base64 string"
		}
		return "a list"
	case reflect.Pointer:
		return expected(t.Elem())
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}
