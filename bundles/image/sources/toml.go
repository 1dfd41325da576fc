package sources

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// decodeStrictly decodes a TOML file and refuses keys that into lacks.
func decodeStrictly(f file, into any, remedy string) error {
	if err := checkDots(f.data); err != nil {
		return &InvalidError{File: f.name, Problem: err.Error(), Remedy: "split the line; " + remedy}
	}
	var content map[string]any
	if _, err := toml.Decode(string(f.data), &content); err != nil {
		problem := &InvalidError{File: f.name, Problem: err.Error(), Remedy: "correct the TOML; " + remedy}
		if known, ok := errors.AsType[toml.ParseError](err); ok {
			problem.Line, problem.Problem = known.Position.Line, "is not TOML of the expected form: "+known.Message
			if known.LastKey != "" {
				problem.Problem += fmt.Sprintf(" (last key %q)", known.LastKey)
			}
		}
		return problem
	}
	lines := keyLines(f.data)
	if key, want := wrongType(content, reflect.TypeOf(into)); want != "" {
		return &InvalidError{File: f.name, Line: lines[key], Problem: fmt.Sprintf("%q is not %s", key, want), Remedy: "correct the TOML; " + remedy}
	}
	meta, err := toml.Decode(string(f.data), into)
	if err != nil {
		return &InvalidError{File: f.name, Problem: err.Error(), Remedy: "correct the TOML; " + remedy}
	}
	var problems []error
	for _, key := range meta.Undecoded() {
		text := key.String()
		problems = append(problems, &InvalidError{
			File: f.name, Line: lines[strings.Join(key, ".")], Problem: fmt.Sprintf("unknown key %q", text), Remedy: "remove or correct the key; " + remedy,
		})
	}
	return invalid(problems)
}

// keyLines returns the first line of each key that a line begins with, by its full name. It is used for messages
// only: keys in inline tables have no line.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	table := ""
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		name, isTable := strings.CutPrefix(line, "[")
		key, _, hasValue := strings.Cut(line, "=")
		switch {
		case isTable:
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "["), "]")
			table = unquoted(name)
			key = table
		case hasValue:
			key = unquoted(key)
			if table != "" {
				key = table + "." + key
			}
		default:
			continue
		}
		if lines[key] == 0 {
			lines[key] = number
		}
	}
	return lines
}

// unquoted returns a TOML key without spaces and quotes.
func unquoted(key string) string { return strings.NewReplacer(`"`, "", "'", "", " ", "").Replace(key) }

// tableLines returns the lines with the header of an array table.
func tableLines(data []byte, name string) []int {
	var found []int
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		header, ok := strings.CutPrefix(strings.TrimSpace(line), "[[")
		header, _, _ = strings.Cut(header, "]]")
		if ok && strings.TrimSpace(header) == name {
			found = append(found, number)
		}
	}
	return found
}

// lineOfKey returns the line of a key in the table whose header or first key is at a line; 0 if there is none.
func lineOfKey(data []byte, header int, key string) int {
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		if number > header && strings.HasPrefix(line, "[") {
			return 0
		}
		name, _, _ := strings.Cut(line, "=")
		if number > header && unquoted(name) == key {
			return number
		}
	}
	return 0
}

// wrongType returns the first key whose value does not fit a type, with what is expected; both are empty if there is none.
func wrongType(value any, t reflect.Type) (key, want string) {
	switch t.Kind() {
	case reflect.Pointer:
		return wrongType(value, t.Elem())
	case reflect.Interface:
		return "", ""
	case reflect.Struct, reflect.Map:
		fields, ok := value.(map[string]any)
		if !ok {
			return "", "a table"
		}
		return wrongTypeIn(fields, t)
	case reflect.Slice:
		items := reflect.ValueOf(value)
		if items.Kind() != reflect.Slice {
			if t.Elem().Kind() == reflect.Struct {
				return "", "a list of tables, each with its name in two pairs of brackets"
			}
			return "", "a list"
		}
		for i := range items.Len() {
			if key, want := wrongType(items.Index(i).Interface(), t.Elem()); want != "" {
				return key, want
			}
		}
		return "", ""
	default:
		if reflect.TypeOf(value).Kind() == t.Kind() {
			return "", ""
		}
		return "", map[reflect.Kind]string{reflect.String: "a text in quotes", reflect.Bool: "true or false"}[t.Kind()]
	}
}

// wrongTypeIn does so for the keys of a table, in their order. Keys that the type lacks fit.
func wrongTypeIn(table map[string]any, t reflect.Type) (key, want string) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		expected, known := typeOfKey(t, name)
		if !known {
			continue
		}
		if below, want := wrongType(table[name], expected); want != "" {
			return strings.TrimSuffix(name+"."+below, "."), want
		}
	}
	return "", ""
}

// typeOfKey returns the type of a key in a struct or map, and whether there is such a key.
func typeOfKey(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	field, ok := t.FieldByNameFunc(func(field string) bool {
		known, _ := t.FieldByName(field)
		tag, _, _ := strings.Cut(known.Tag.Get("toml"), ",")
		return strings.EqualFold(tag, name)
	})
	return field.Type, ok
}
