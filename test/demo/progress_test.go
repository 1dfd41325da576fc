package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// TestBuildProgress checks that each line of a build is printed, and on a terminal is drawn below the others.
func TestBuildProgress(t *testing.T) {
	t.Parallel()
	for name, terminal := range map[string]bool{"Terminal": true, "File": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			printer := &printer{out: &out, began: time.Now(), terminal: terminal}
			if _, err := (buildProgress{printer}).Write([]byte("building etcd (1 of 6)\n")); err != nil {
				t.Fatal(err)
			}
			printer.print("another line")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			printer.refresh(ctx)
			got := out.String()
			if !strings.Contains(got, "programs     building etcd (1 of 6)") || !strings.Contains(got, "another line\n") {
				t.Errorf("output %q: want both lines", got)
			}
			if drawn := strings.Contains(got, "… building etcd (1 of 6), for 0 s"); drawn != terminal {
				t.Errorf("output %q: line with the age: %t, want %t", got, drawn, terminal)
			}
			if terminal && !strings.HasSuffix(got, "\r\x1b[2K") {
				t.Errorf("output %q: the line with the age is left", got)
			}
		})
	}
}
