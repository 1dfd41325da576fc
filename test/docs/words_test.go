package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// maxWords is the largest number of words in docs. It is the number that was reached when the pages said each fact
// once, rounded up to the next 500. If the test fails, a page probably repeats another one: link it instead. Raise the
// number only for new facts.
const maxWords = 50500

// rulesPage is the page with a row of about 20 words for each rule. It grows with their number, and is not read as a whole.
const rulesPage = "docs/compatibility.md"

// TestWords checks the number of words in docs: a reader finds a fact faster if one place states it.
func TestWords(t *testing.T) {
	t.Parallel()
	sum, most, longest := 0, 0, ""
	for name := range pages(t) {
		if !strings.HasPrefix(name, "docs/") || name == rulesPage {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		words := countWords(string(text))
		sum += words
		if words > most {
			most, longest = words, name
		}
	}
	if sum > maxWords {
		t.Errorf("docs has %d words, want at most %d: say each fact once, and link it elsewhere. %s has the most words: %d",
			sum, maxWords, longest, most)
	}
}

// countWords counts the words of a text. Signs alone, such as the bars of tables, are no words.
func countWords(text string) int {
	count := 0
	for word := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			count++
		}
	}
	return count
}

func TestCountWords(t *testing.T) {
	t.Parallel()
	if got, want := countWords("# Lamps\n\n| `--wick` | 2 wicks |\n|---|---|\n- → (light)"), 5; got != want {
		t.Errorf("%d words, want %d", got, want)
	}
}
