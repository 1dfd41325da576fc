package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
)

func TestQuiet(t *testing.T) {
	t.Parallel()
	cut, expected := fmt.Errorf("patching: %w", context.Canceled), errors.New("taken")
	for name, tt := range map[string]struct {
		reason  string
		err     error
		running bool
		logged  bool
	}{
		"Running":  {reason: "while the program runs everything is an error", err: cut, running: true, logged: true},
		"CutOff":   {reason: "work that the stop cut off is none", err: cut},
		"AsText":   {reason: "nor when a client made text of it", err: errors.New(`Post "https://x": context canceled`)},
		"LeadGone": {reason: "nor the lead that was given up", err: errors.New("leader election lost")},
		"Expected": {reason: "an expected error is none while the program runs", err: fmt.Errorf("leading: %w", expected), running: true},
		"Other":    {reason: "other errors stay errors", err: errors.New("disk full"), logged: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var out bytes.Buffer
			logger := slog.New(Quiet(ctx, slog.NewTextHandler(&out, nil), expected)).With("a", 1).WithGroup("g")
			if !tt.running {
				stop()
			}
			logger.Error("Failed", "err", tt.err)
			if got := out.Len() > 0; got != tt.logged {
				t.Errorf("%s: logged %q", tt.reason, out.String())
			}
		})
	}
}
