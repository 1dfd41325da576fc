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

// maxQuoted is how much of a foreign value a message repeats, in bytes.
const maxQuoted = 200

// clip shortens a value that messages repeat.
func clip(text string) string { return Clip(text, maxQuoted) }

const ellipsis = "…"

// Clip shortens a text to at most limit bytes, the ellipsis in which it ends then
// included, without cutting a character in two.
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

// OneLine gives a foreign text as it can be shown on one line: spaces for line ends
// and tabs, and nothing that a terminal might act on.
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

// Quote returns a value from a catalog as messages repeat it: quoted, with
// control characters escaped, and shortened to 200 bytes.
func Quote(text string) string { return strconv.Quote(clip(text)) }

var errWrongType = errors.New("wrong type")

// DescribeJSON rewords an error of encoding/json for those who write catalogs:
// what a field is expected to be instead of which Go type it does not fit.
// Other errors come back as they are.
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

// expected names the JSON that fits a Go type.
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
