// Package redact removes secrets from objects and texts: passwords, tokens, keys. Its functions are
// pure. In doubt they remove too much.
package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Mark replaces what was removed.
const Mark = "[redacted]"

// words occur in the names of secrets.
const words = `pass(?:word|wd|phrase|code)|pwd|secret|token|(?:api|access|private|signing|encryption)[_-]?key|` +
	`credential|authorization|dsn|connection[_-]?string`

var (
	secretName = regexp.MustCompile(`(?i)` + words + `|(?:^|[_-])(?:auth|key|pass)$`)

	privateKey = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	// keyTail matches the end of a private key whose beginning was cut off.
	keyTail = regexp.MustCompile(`(?:[A-Za-z0-9+/=]|\s|\\[nr])*-----END [A-Z0-9 ]*PRIVATE KEY-----`)

	userInfo = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@"'<>]+@`)
	scheme   = regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)(\s+)[A-Za-z0-9._~+/=-]{8,}`)
	jwt      = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)*`)
	known    = regexp.MustCompile(`\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|` +
		`glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|sha256~[A-Za-z0-9_-]{20,})`)

	// assignment matches NAME=VALUE, NAME: VALUE, --NAME VALUE and the like. The value may be quoted, even twice.
	assignment = regexp.MustCompile(`(?i)((?:[\w.-]*(?:` + words + `)[\w.-]*)(?:\\*["'])?\s*(?:=>|[=:])\s*)` + value)
	flag       = regexp.MustCompile(`(?i)((?:^|\s)--?[\w.-]*(?:` + words + `)[\w.-]*\s+)` + value)

	// auth matches a name that is too short to match within other names.
	auth = regexp.MustCompile(`(?i)(\bauth(?:\\*["'])?\s*(?:=>|[=:])\s*)` + value)
	// told matches a sentence that states a secret. A secret has capitals or digits: "the token is
	// expired" states none.
	told = regexp.MustCompile(`((?i:\b(?:pass(?:word|phrase|code)|token|api[ _-]?key)\s+(?:is|was)\s+))[^\s"',;]*[A-Z0-9][^\s"',;]*`)
	// signed matches the signature in a URL.
	signed = regexp.MustCompile(`(?i)([?&;](?:sig|signature|x-(?:amz|goog)-(?:signature|credential|security-token))=)[^&\s"'<>]+`)
	// login and short match the flags of curl, database clients and the like.
	login = regexp.MustCompile(`((?:^|\s)(?:-u|--user|--proxy-user)(?:\s+|=))[^\s:"']+:[^\s"']+`)
	short = regexp.MustCompile(`((?:^|\s)-p)(\s+)?(?:[^\s=-][^\s=]*[A-Z][^\s=]*|[A-Z][^\s=]*)`)

	// encoded matches base64, which may continue on the next lines.
	encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}(?:\r?\n[ \t]*[A-Za-z0-9+/_-]{4,}={0,2})*`)
	space   = regexp.MustCompile(`\s+`)
	// keyWithin matches PRIVATE KEY in base64, at each of the three possible offsets.
	keyWithin = regexp.MustCompile(`UFJJVkFURSBLRV|BSSVZBVEUgS0VZ|QUklWQVRFIEtFW`)
)

// value matches a word, or several words in quotes.
const value = `(?:(?:bearer|basic)\s+)?(?:"(?:[^"\\]|\\.)*"|\\+"(?:[^"\\]|\\[^"])*\\+"|\\*'[^']*'|\\*["']?[^\s"',;&}\])]+[^\s"',;&}]*)`

// LooksSecret reports whether the name of a variable, field or flag looks like the name of a secret.
func LooksSecret(name string) bool { return secretName.MatchString(name) }

// Text returns a text without secrets. The text may be a log, a message or a command line.
func Text(text string) string { return redact(text, 0) }

// maxDepth is the number of nested encodings that are decoded.
const maxDepth = 2

func redact(text string, depth int) string {
	if depth < maxDepth {
		text = encoded.ReplaceAllStringFunc(text, func(blob string) string { return decoded(blob, depth) })
	}
	text = privateKey.ReplaceAllString(text, Mark)
	if strings.Contains(text, "PRIVATE KEY-----") {
		text = keyTail.ReplaceAllString(text, Mark)
	}
	text = userInfo.ReplaceAllString(text, "${1}"+Mark+"@")
	text = jwt.ReplaceAllString(text, Mark)
	text = known.ReplaceAllString(text, Mark)
	text = scheme.ReplaceAllString(text, "${1}${2}"+Mark)
	text = assignment.ReplaceAllString(text, "${1}"+Mark)
	text = auth.ReplaceAllString(text, "${1}"+Mark)
	text = told.ReplaceAllString(text, "${1}"+Mark)
	text = signed.ReplaceAllString(text, "${1}"+Mark)
	text = login.ReplaceAllString(text, "${1}"+Mark)
	text = short.ReplaceAllString(text, "${1}${2}"+Mark)
	return flag.ReplaceAllString(text, "${1}"+Mark)
}

// decoded returns a blob unchanged, unless it encodes a text with a secret.
func decoded(blob string, depth int) string {
	if keyWithin.MatchString(space.ReplaceAllString(blob, "")) {
		return Mark
	}
	for line := range strings.FieldsSeq(blob) {
		plain := strings.TrimRight(line, "=")
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text, err := encoding.DecodeString(plain)
			if err == nil && utf8.Valid(text) && (redact(string(text), depth+1) != string(text) || strings.Contains(string(text), `"auth"`)) {
				return Mark
			}
		}
	}
	return blob
}
