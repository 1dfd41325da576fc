package catalogs

import (
	"strings"
	"unicode"
)

// sameFailure reports whether two errors have the same text without digits. The local port of a
// connection, for example, differs each time.
func sameFailure(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	withoutDigits := func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}
	return strings.Map(withoutDigits, a.Error()) == strings.Map(withoutDigits, b.Error())
}
