package main

import (
	"strings"
	"testing"
)

// TestQuoted checks that a long answer is shortened and says so.
func TestQuoted(t *testing.T) {
	t.Parallel()
	if got, want := strings.Join(quoted("list", "NAME  \nlantern\n"), "\n"), "\n  $ list\n  NAME\n  lantern"; got != want {
		t.Errorf("short answer: got %q, want %q", got, want)
	}
	long := quoted("list", strings.Repeat("x\n", longestAnswer+3))
	if len(long) != longestAnswer+2 || long[len(long)-1] != "  … (3 lines left out)" {
		t.Errorf("long answer: got %q", long)
	}
}
