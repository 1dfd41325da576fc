package catalogs

import (
	"strings"
	"unicode"
)

// sameFailure says whether two errors say the same but for numbers: the port of
// one's own end of a connection is another one each time.
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
