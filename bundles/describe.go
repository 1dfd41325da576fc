package bundles

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// maxQuoted is how much of a foreign value a message repeats, in bytes.
const maxQuoted = 200

// clip shortens a value that messages repeat.
func clip(text string) string { return clipTo(text, maxQuoted) }

// clipTo shortens a text to some bytes, without cutting a character in two.
func clipTo(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
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
