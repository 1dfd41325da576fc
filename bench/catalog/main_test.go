package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	text := report([]figure{
		{name: "peer", wall: 4 * time.Second, work: 8 * time.Second, memory: 200 << 20},
		{name: "ours", wall: time.Second, work: 2 * time.Second, memory: 50 << 20},
	})
	if want := "| ours | 1.00 s | 25 % | 2.00 s | 25 % | 50 MiB |\n"; !strings.HasSuffix(text, want) {
		t.Errorf("want %q at the end of\n%s", want, text)
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("a\n"+beginMarker+"old\n"+endMarker+"\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := insert(page, "new\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != "a\n"+beginMarker+"\nnew\n\n"+endMarker+"\nb\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := insert(os.DevNull, "new\n"); err == nil {
		t.Error("a page without markers was written")
	}
}

// TestRun measures a program.
func TestRun(t *testing.T) {
	found, err := run(t.Context(), os.Args[0], []string{"-test.run", "^$"})
	if err != nil || found.wall <= 0 || found.memory <= 0 {
		t.Errorf("got %+v, %v", found, err)
	}
}
