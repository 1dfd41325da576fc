package values

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

func TestCount(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   int
	}{
		"Lines":       {"one entry a line", "a: 1\nb: 2\n", 2},
		"CRLF":        {"CR LF is one line break", "a: 1\r\nb: 2\r\n", 2},
		"CR":          {"and so is CR", "a: 1\rb: 2\r", 2},
		"NEL":         {"U+0085 is one", "a: 1\u0085b: 2\u0085", 2},
		"LS":          {"U+2028 is one", "a: 1\u2028b: 2\u2028", 2},
		"PS":          {"U+2029 is one", "a: 1\u2029b: 2\u2029", 2},
		"ItemsLS":     {"and so is one behind any line break", "- a\u2028- b\u0085- c\r- d\u2029", 4},
		"Letters":     {"others of the same first byte are none", "caf\u00a9 \u2020 \u2022", 0},
		"Flow":        {"flow collections have commas", "[1,2,{a: b}]", 4},
		"Items":       {"an item that begins a line is its line's", "- a\n  - b\n", 2},
		"Compact":     {"further ones count", "- - - a\n", 3},
		"CompactTab":  {"whatever the blank is", "- -\t-\ta\n", 3},
		"CompactNEL":  {"and a line break beyond ASCII ends an item", "- -\u0085- -\u2028- -\u2029", 6},
		"Keys":        {"and so do explicit keys", "? ? ? a\n", 3},
		"Hyphens":     {"a hyphen within a word is none", "a-b: c-d -1\n", 1},
		"UTF16Little": {"each unit of UTF-16 counts", "\xff\xfe-\x00 \x00", 3},
		"UTF16Big":    {"in either order", "\xfe\xff\x00-\x00 ", 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Count([]byte(tc.text)); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// FuzzCount checks that the parser never finds more than twice the counted values.
func FuzzCount(f *testing.F) {
	for _, text := range []string{
		"a: 1\rb: [1, {c: d}]\r", "- - - a\n- ? b\n  : c", "a: 1\u0085b: 2\u2028- c\u2029", "{a, b, ? c, [d: e]}",
		"? - a\n: - b\n", "---\na: |\n  b\n...\n--- c", "\xff\xfe-\x00 \x00a\x00", "- ! &a b\n- !!str\n-",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		// An alias repeats what was parsed once.
		if len(text) > 1<<12 || strings.Contains(string(text), "*") {
			return
		}
		var value any
		if yaml.Unmarshal(text, &value) != nil {
			return
		}
		if got, most := entries(value), 2*Count(text)+2; got > most {
			t.Errorf("%q: the parser finds %d entries, %d were expected at most", text, got, most)
		}
	})
}

// entries counts the elements of collections.
func entries(value any) int {
	n := 0
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			n += 1 + entries(element)
		}
	case map[any]any:
		for key, element := range value {
			n += 1 + entries(key) + entries(element)
		}
	}
	return n
}

func BenchmarkCount(b *testing.B) {
	text := []byte(strings.Repeat("  - name: lamp\n    description: 'a lamp, with a switch'\n", 10_000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Count(text)
	}
}
