package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestConfirm reads answers from an input that then ends.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in, out string
		yes     bool
	}{
		"Yes":        {in: "Yes\n", out: "Go? [y/N] ", yes: true},
		"Incomplete": {in: "y", out: "Go? [y/N] \n", yes: true},
		"No":         {in: "n\n", out: "Go? [y/N] "},
		"Empty":      {in: "\n", out: "Go? [y/N] "},
		"End":        {in: "", out: "Go? [y/N] \n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			yes, err := confirm(t.Context(), strings.NewReader(tt.in), &out, "Go?")
			if yes != tt.yes || err != nil || out.String() != tt.out {
				t.Errorf("confirm = %v, %v, after %q; want %v after %q", yes, err, out.String(), tt.yes, tt.out)
			}
		})
	}
}

// TestConfirmInterrupted ends the context while the user has not answered.
func TestConfirmInterrupted(t *testing.T) {
	t.Parallel()
	in, answer := io.Pipe()
	defer answer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if yes, err := confirm(ctx, in, io.Discard, "Go?"); yes || !errors.Is(err, ErrInterrupted) {
		t.Errorf("confirm = %v, %v, want %v", yes, err, ErrInterrupted)
	}
}
