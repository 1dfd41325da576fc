package api_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestNote(t *testing.T) {
	for _, tt := range []struct {
		reason, text, want string
	}{
		{reason: "nothing to say"},
		{reason: "short", text: "lamp is lit", want: "lamp is lit"},
		{reason: "just fits", text: strings.Repeat("x", 1024), want: strings.Repeat("x", 1024)},
		{reason: "one too many", text: strings.Repeat("x", 1025), want: strings.Repeat("x", 1021) + "…"},
		{reason: "a character on the border", text: strings.Repeat("x", 1020) + strings.Repeat("ü", 10), want: strings.Repeat("x", 1020) + "…"},
		{reason: "a character up to the border", text: "x" + strings.Repeat("ü", 600), want: "x" + strings.Repeat("ü", 510) + "…"},
	} {
		got := api.EventNote(tt.text)
		if got != tt.want {
			t.Errorf("%s: %d bytes %q, want %d bytes", tt.reason, len(got), got, len(tt.want))
		}
		if len(got) > api.MaxEventNote || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, valid %v", tt.reason, len(got), utf8.ValidString(got))
		}
	}
}

func TestNoteOfBytesThatAreNoText(t *testing.T) {
	if got := api.EventNote(strings.Repeat("\x80", 2000)); len(got) > api.MaxEventNote {
		t.Errorf("%d bytes", len(got))
	}
}
