// Package terminal prevents foreign text from controlling a terminal.
//
// Catalogs, containers and API objects hold text from others. Every command writes through a
// [Writer], which replaces control characters by readable escapes. The program's own control
// sequences pass as [Control].
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
// A character may be split between two writes. An incomplete character at the very end of the output is omitted.
type Writer struct {
	out io.Writer

	mu sync.Mutex
	// partial is the beginning of a character whose rest is in the next write.
	partial []byte
}

// NewWriter returns a Writer to out. It returns out unchanged if out is a Writer.
func NewWriter(out io.Writer) *Writer {
	if w, ok := out.(*Writer); ok {
		return w
	}
	return &Writer{out: out}
}

// Write writes text with its control characters replaced. It returns the number of bytes of p.
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

// Protect makes a command and its sub-commands write through Writers.
func Protect(root *cobra.Command) {
	out, errOut := NewWriter(root.OutOrStdout()), NewWriter(root.ErrOrStderr())
	root.SetOut(out)
	root.SetErr(errOut)
}

// Unfiltered returns the writer below a Writer, for output that is not text, such as an archive,
// and for programs that draw.
func Unfiltered(out io.Writer) io.Writer {
	if w, ok := out.(*Writer); ok {
		return w.out
	}
	return out
}

// IsTerminal reports whether out is a terminal.
func IsTerminal(out io.Writer) bool {
	file, ok := Unfiltered(out).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// mark begins and ends a control sequence of the program in text for a Writer. It differs between
// processes, so foreign text cannot contain it.
var mark = sync.OnceValue(func() string { return "\x1b" + rand.Text() + ";" })

// Control returns a control sequence that a Writer does not escape. The whole result must be in one
// call of Write. Foreign text must never be part of it.
func Control(sequence string) string { return mark() + sequence + mark() }

// Escape returns text with escapes in place of characters that control a terminal: \u001b for the
// character ESC, \x9b for the byte 0x9b. They are the control characters of C0 (except line feed
// and tab) and C1, DEL, and bytes that are not UTF-8. They also are the controls of bidirectional
// text, which change the order of the shown characters. Further, YAML does not allow U+FEFF, U+FFFE
// and U+FFFF.
//
// In a JSON string, the escape of a character means that character, so a JSON document keeps its meaning.
func Escape(text string) string {
	return replace(text, func(string) (string, string, bool) { return "", "", false })
}

// replace returns text with escapes. control reports whether a text begins with a control sequence
// of the program, and returns the sequence and the rest.
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

// sequence returns the control sequence of the program with which a text begins.
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

// incomplete returns the number of bytes at the end of a text that begin an incomplete character.
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
