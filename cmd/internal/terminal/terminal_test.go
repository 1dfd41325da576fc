package terminal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Plain":    {reason: "text stays", text: "Lampe für € 🪔\n\tend", want: "Lampe für € 🪔\n\tend"},
		"C0":       {reason: "ESC, BEL, NUL, backspace and carriage return are shown", text: "\x1b[2J\a\x00\b\r", want: `\u001b[2J\u0007\u0000\u0008\u000d`},
		"DEL":      {reason: "DEL is a control character", text: "a\x7fb", want: `a\u007fb`},
		"C1":       {reason: "U+009B is CSI", text: "a\u009b31mb\u0085", want: `a\u009b31mb\u0085`},
		"C1Byte":   {reason: "a terminal with 8 bits takes the byte 0x9b for CSI", text: "a\x9b31m", want: `a\x9b31m`},
		"NotUTF8":  {reason: "what is not UTF-8 is shown byte by byte", text: "\xff\xc2a\xe2\x80", want: `\xff\xc2a\xe2\x80`},
		"Override": {reason: "an override changes the order of characters", text: "\u202egnp.exe\u202c", want: `\u202egnp.exe\u202c`},
		"Isolate":  {reason: "so does an isolate", text: "\u2066a\u2067b\u2068c\u2069", want: `\u2066a\u2067b\u2068c\u2069`},
		"NotYAML":  {reason: "YAML does not allow these", text: "\ufeff\ufffe\uffff", want: `\ufeff\ufffe\uffff`},
		"Marks":    {reason: "so do marks", text: "\u200e\u200f\u061c", want: `\u200e\u200f\u061c`},
		"Hebrew":   {reason: "letters that are written from the right stay", text: "מנורה", want: "מנורה"},
		"Own":      {reason: "Escape does not know control sequences of ours", text: terminal.Control("x")[:1] + "x", want: `\u001bx`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, terminal.Escape(tt.text)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	red := terminal.Control("\x1b[31m")
	for name, tt := range map[string]struct {
		reason string
		writes []string
		want   string
	}{
		"Foreign":    {reason: "foreign sequences are shown", writes: []string{"a\x1b[31mb"}, want: `a\u001b[31mb`},
		"Own":        {reason: "our own pass", writes: []string{"a" + red + "b"}, want: "a\x1b[31mb"},
		"Both":       {reason: "each for itself", writes: []string{red + "\x1b[31m" + terminal.Control("\x1b[0m")}, want: "\x1b[31m" + `\u001b[31m` + "\x1b[0m"},
		"Forged":     {reason: "what looks like one of ours is none", writes: []string{"\x1bABCDEFGHIJKLMNOPQRSTUVWXYZ;\x1b[31m\x1bABCDEFGHIJKLMNOPQRSTUVWXYZ;"}, want: `\u001bABCDEFGHIJKLMNOPQRSTUVWXYZ;\u001b[31m\u001bABCDEFGHIJKLMNOPQRSTUVWXYZ;`},
		"Split":      {reason: "a character may come in pieces", writes: []string{"\xe2", "\x82", "\xac!"}, want: "€!"},
		"SplitCSI":   {reason: "so may one that controls", writes: []string{"a\xc2", "\x9b31m"}, want: `a\u009b31m`},
		"SplitBidi":  {reason: "or one that reorders", writes: []string{"\xe2\x80", "\xaeb"}, want: `\u202eb`},
		"Unfinished": {reason: "what never becomes a character is shown", writes: []string{"\xe2\x80", "b"}, want: `\xe2\x80b`},
		"Nothing":    {reason: "an empty text is one", writes: []string{""}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w := terminal.NewWriter(&out)
			for _, text := range tt.writes {
				if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
					t.Errorf("wrote %d of %d bytes: %v", n, len(text), err)
				}
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

type broken struct{}

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterFails(t *testing.T) {
	t.Parallel()
	if _, err := terminal.NewWriter(broken{}).Write([]byte("a")); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

// TestWriterConcurrently is for the race detector. Logs and output share a writer.
func TestWriterConcurrently(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := terminal.NewWriter(&out)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				_, _ = w.Write([]byte("€\x1b\n"))
			}
		})
	}
	group.Wait()
	if want := strings.Repeat(`€\u001b`+"\n", 800); out.String() != want {
		t.Error("lines are mixed")
	}
}

// TestProtect checks that sub-commands of a protected command are protected as well.
func TestProtect(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	root, child := &cobra.Command{Use: "lamp"}, &cobra.Command{Use: "light"}
	root.AddCommand(child)
	root.SetOut(&out)
	root.SetErr(&errOut)
	terminal.Protect(root)
	terminal.Protect(root)
	_, _ = child.OutOrStdout().Write([]byte("\x1b"))
	_, _ = child.ErrOrStderr().Write([]byte("\a"))
	if out.String() != `\u001b` || errOut.String() != `\u0007` {
		t.Errorf("%q, %q", out.String(), errOut.String())
	}
	if terminal.Unfiltered(child.OutOrStdout()) != &out || terminal.Unfiltered(&out) != &out {
		t.Error("what is below cannot be reached")
	}
}

// TestEscapedDocuments checks that escapes preserve the meaning of JSON and YAML documents.
func TestEscapedDocuments(t *testing.T) {
	t.Parallel()
	for _, r := range unsafe() {
		for _, text := range []string{string(r), "a" + string(r) + "b: 'c' \\ \"d\" #e", "a\n" + string(r) + "\n  b\n"} {
			sameDocument(t, text)
		}
	}
}

// unsafe returns all characters of the first Unicode plane that may be replaced, and some others.
func unsafe() []rune {
	all := []rune{'\ufeff', '\ufffe', '\uffff', '\U000e0001', '\U0010ffff'}
	for r := range rune(0x2100) {
		all = append(all, r)
	}
	return all
}

func FuzzWriter(f *testing.F) {
	f.Add("a\u202eb\x1b[31m", 3)
	f.Add("\xe2\x80\u009b", 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = max(0, min(at, len(text)))
		var out bytes.Buffer
		w := terminal.NewWriter(&out)
		_, _ = w.Write([]byte(text[:at]))
		_, _ = w.Write([]byte(text[at:]))
		for _, r := range out.String() {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("%q passes in %q", r, out.String())
			}
		}
		if !utf8.ValidString(out.String()) {
			t.Errorf("%q is not UTF-8", out.String())
		}
		if utf8.ValidString(text) {
			sameDocument(t, text)
		}
	})
}

// sameDocument checks that a value with a text stays the same after writing and parsing.
func sameDocument(t *testing.T, text string) {
	t.Helper()
	want := map[string]string{"key": text}
	encoded, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := json.Unmarshal([]byte(terminal.Escape(string(encoded))), &got); err != nil || got["key"] != text {
		t.Errorf("JSON: %q became %q, %v", text, got["key"], err)
	}
	converted, err := terminal.YAML(encoded)
	if err != nil {
		t.Fatal(err)
	}
	safe := terminal.Escape(string(converted))
	got = map[string]string{}
	if err := yaml.Unmarshal([]byte(safe), &got); err != nil || got["key"] != text {
		t.Errorf("YAML: %q became %q, %v:\n%s", text, got["key"], err, safe)
	}
}
