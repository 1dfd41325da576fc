// Package redact takes out of objects and texts what their owner would not show to
// strangers: passwords, tokens, keys. It is pure, and rather takes out too much.
package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Mark stands for what was taken out.
const Mark = "[redacted]"

// words are what names of secret things hold.
const words = `pass(?:word|wd|phrase|code)|pwd|secret|token|(?:api|access|private|signing|encryption)[_-]?key|` +
	`credential|authorization|dsn|connection[_-]?string`

var (
	secretName = regexp.MustCompile(`(?i)` + words + `|(?:^|[_-])(?:auth|key|pass)$`)

	privateKey = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	// keyTail is what is left of a private key whose beginning was cut off.
	keyTail = regexp.MustCompile(`(?:[A-Za-z0-9+/=]|\s|\\[nr])*-----END [A-Z0-9 ]*PRIVATE KEY-----`)

	userInfo = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@"'<>]+@`)
	scheme   = regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)(\s+)[A-Za-z0-9._~+/=-]{8,}`)
	jwt      = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)*`)
	known    = regexp.MustCompile(`\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|` +
		`glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|sha256~[A-Za-z0-9_-]{20,})`)

	// assignment is NAME=VALUE, NAME: VALUE, --NAME VALUE and the like, in quotes or not,
	// which may themselves be quoted once more.
	assignment = regexp.MustCompile(`(?i)((?:[\w.-]*(?:` + words + `)[\w.-]*)(?:\\*["'])?\s*(?:=>|[=:])\s*)` + value)
	flag       = regexp.MustCompile(`(?i)((?:^|\s)--?[\w.-]*(?:` + words + `)[\w.-]*\s+)` + value)

	// auth is a name that is too short to be looked for within others.
	auth = regexp.MustCompile(`(?i)(\bauth(?:\\*["'])?\s*(?:=>|[=:])\s*)` + value)
	// told is a sentence. That a token is expired is no secret: what is one has capitals
	// or digits.
	told = regexp.MustCompile(`((?i:\b(?:pass(?:word|phrase|code)|token|api[ _-]?key)\s+(?:is|was)\s+))[^\s"',;]*[A-Z0-9][^\s"',;]*`)
	// signed is what a URL is signed with.
	signed = regexp.MustCompile(`(?i)([?&;](?:sig|signature|x-(?:amz|goog)-(?:signature|credential|security-token))=)[^&\s"'<>]+`)
	// login and short are the flags of curl, of databases and the like.
	login = regexp.MustCompile(`((?:^|\s)(?:-u|--user|--proxy-user)(?:\s+|=))[^\s:"']+:[^\s"']+`)
	short = regexp.MustCompile(`((?:^|\s)-p)(\s+)?(?:[^\s=-][^\s=]*[A-Z][^\s=]*|[A-Z][^\s=]*)`)

	// encoded is base64, which may go on in the next lines.
	encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}(?:\r?\n[ \t]*[A-Za-z0-9+/_-]{4,}={0,2})*`)
	space   = regexp.MustCompile(`\s+`)
	// keyWithin is PRIVATE KEY in base64, at each of the three places where it may begin.
	keyWithin = regexp.MustCompile(`UFJJVkFURSBLRV|BSSVZBVEUgS0VZ|QUklWQVRFIEtFW`)
)

// value is a word, or several in quotes.
const value = `(?:(?:bearer|basic)\s+)?(?:"(?:[^"\\]|\\.)*"|\\+"(?:[^"\\]|\\[^"])*\\+"|\\*'[^']*'|\\*["']?[^\s"',;&}\])]+[^\s"',;&}]*)`

// LooksSecret says whether the name of a variable, field or flag is that of something
// secret.
func LooksSecret(name string) bool { return secretName.MatchString(name) }

// Text takes what is secret out of a text of any kind: a log, a message, a command line.
func Text(text string) string { return redact(text, 0) }

// maxDepth bounds how often what is encoded within what is encoded is looked at.
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

// decoded gives a blob as it is, unless it is the encoding of a text that holds
// something secret.
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
