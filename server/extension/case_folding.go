package extension

import (
	"unicode"
	"unicode/utf8"
)

// indexFold returns the first position of a word in a text, regardless of case, and the number of
// bytes of the match; -1 if there is none. The word is in lower case. The function allocates
// nothing because descriptions are long and numerous.
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

// prefixFold returns the number of bytes at the beginning of a text that match the word, or -1 if
// it does not begin with the word.
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
