package main

import (
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
}
