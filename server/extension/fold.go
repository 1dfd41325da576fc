package extension

import (
	"unicode"
	"unicode/utf8"
)

// indexFold returns where a word, which is in lower case, first stands in a text
// of whatever case, and how many bytes it takes there; -1 if it does not. It
// takes no memory: descriptions are long and many.
func indexFold(text, word string) (at, size int) {
	if word == "" {
		return 0, 0
	}
	for at < len(text) {
		c := text[at]
		if c < utf8.RuneSelf && lower(c) != word[0] {
			at++
			continue
		}
		if size := prefixFold(text[at:], word); size >= 0 {
			return at, size
		}
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
	return -1, 0
}

// prefixFold returns how many bytes at the beginning of a text are the word, or
// -1 if it does not begin with it.
func prefixFold(text, word string) int {
	rest := text
	for _, want := range word {
		got, n := utf8.DecodeRuneInString(rest)
		if n == 0 || unicode.ToLower(got) != want {
			return -1
		}
		rest = rest[n:]
	}
	return len(text) - len(rest)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
