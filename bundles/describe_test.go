package bundles_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles"
)

func TestClip(t *testing.T) {
	const limit = 4096
	if got := bundles.Clip("short", limit); got != "short" {
		t.Errorf("%q", got)
	}
	if whole := strings.Repeat("x", limit); bundles.Clip(whole, limit) != whole {
		t.Error("a text that just fits is cut")
	}
	for shift := range 4 {
		got := bundles.Clip(strings.Repeat("x", shift)+strings.Repeat("ü€", limit), limit)
		if len(got) > limit || len(got) < limit-8 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes, ends in %q", len(got), got[len(got)-8:])
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := bundles.OneLine("a\tb\r\nc\x1b[31md"); got != "a b  c\uFFFD[31md" {
		t.Errorf("%q", got)
	}
}

// TestNounForms covers both forms of a noun.
func TestNounForms(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 lines": bundles.Count(0, "line"), "1 line": bundles.Count(1, "line"), "2 lines": bundles.Count(2, "line"),
		"1 entry": bundles.Count(1, "entry"), "2 entries": bundles.Count(2, "entry"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
