// Package terminal keeps text of foreign origin from controlling a terminal.
//
// Catalogs, containers and API objects hold texts that others wrote. Every command writes
// through a [Writer], which replaces the characters that a terminal acts on by escapes that
// can be read. Our own control sequences pass it as [Control].
package terminal

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Writer replaces control characters in what it passes on, as [Escape] does. It is safe for
// concurrent use.
//
// A character may be split between two writes. An incomplete character at the very end of
// the output is left out.
type Writer struct {
	out io.Writer

	mu sync.Mutex
	// partial is the beginning of a character whose rest comes with the next write.
	partial []byte
}

// NewWriter returns a Writer to out. A Writer is returned as it is.
func NewWriter(out io.Writer) *Writer {
	if w, ok := out.(*Writer); ok {
		return w
	}
	return &Writer{out: out}
}

// Write passes text on with its control characters replaced. The count is of the bytes of p.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := slices.Concat(w.partial, p)
	whole := len(text) - incomplete(text)
	w.partial = text[whole:]
	if whole == 0 {
		return len(p), nil
	}
	if _, err := io.WriteString(w.out, replace(string(text[:whole]), sequence)); err != nil {
		return 0, err //nolint:wrapcheck // it stands for the other writer
	}
	return len(p), nil
}

// Protect makes a command, and the commands below it, write through Writers.
func Protect(root *cobra.Command) {
	out, errOut := NewWriter(root.OutOrStdout()), NewWriter(root.ErrOrStderr())
	root.SetOut(out)
	root.SetErr(errOut)
}

// Unfiltered returns the writer below a Writer: for what is not text, such as an archive,
// and for a program that draws.
func Unfiltered(out io.Writer) io.Writer {
	if w, ok := out.(*Writer); ok {
		return w.out
	}
	return out
}

// IsTerminal reports whether what is written to out is shown on a terminal.
func IsTerminal(out io.Writer) bool {
	file, ok := Unfiltered(out).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// mark is how a control sequence of ours begins and ends on its way to a Writer. It differs
// between processes, so that no foreign text can hold it.
var mark = sync.OnceValue(func() string { return "\x1b" + rand.Text() + ";" })

// Control returns a control sequence as a Writer passes it on. Both its ends have to be in
// one call of Write. A foreign text must never be part of it.
func Control(sequence string) string { return mark() + sequence + mark() }

// Escape returns text with escapes in place of characters that a terminal acts on: \u001b
// for the character ESC, \x9b for the byte 0x9b. These are the control characters of C0 (but
// line feed and tab) and C1, DEL, bytes that are not UTF-8, the controls of bidirectional text,
// which change the order in which characters are shown, and the characters that YAML does not
// allow: U+FEFF, U+FFFE and U+FFFF.
//
// In a JSON string the escape of a character means that character: a JSON document means the
// same afterwards.
func Escape(text string) string {
	return replace(text, func(string) (string, string, bool) { return "", "", false })
}

// replace returns text with escapes. The function control reports whether a text begins with
// a control sequence of ours, and returns the sequence and what follows it.
func replace(text string, control func(string) (own, rest string, ok bool)) string {
	var b strings.Builder
	b.Grow(len(text))
	for text != "" {
		if own, rest, ok := control(text); ok {
			b.WriteString(own)
			text = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case isUnsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// sequence returns the control sequence of ours with which a text begins.
func sequence(text string) (own, rest string, ok bool) {
	if text[0] != '\x1b' {
		return "", "", false
	}
	after, ok := strings.CutPrefix(text, mark())
	if !ok {
		return "", "", false
	}
	return strings.Cut(after, mark())
}

// isUnsafe reports whether a character is replaced by an escape.
func isUnsafe(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\ufeff', '\ufffe', '\uffff':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// incomplete returns how many bytes at the end of a text are the beginning of a character.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		tail := text[len(text)-n:]
		if !utf8.RuneStart(tail[0]) {
			continue
		}
		if utf8.FullRune(tail) {
			return 0
		}
		return n
	}
	return 0
}
