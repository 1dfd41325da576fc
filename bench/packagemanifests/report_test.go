package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestMarkdown checks a row of the report.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	got := markdown(options{calls: 3, rest: time.Second}, []figures{{
		name: "OLM", packages: 331, ready: 2 * time.Second, table: 90 * time.Millisecond, list: time.Second, crowd: 4 * time.Second,
		processor: 1500 * time.Millisecond, idle: 64 << 20, peak: 128 << 20,
	}})
	if want := "| OLM | 2.0 s | 90 ms | 1000 ms | 4000 ms | 1.50 s | 64 MiB | 128 MiB |"; !strings.Contains(got, want) {
		t.Errorf("report:\n%s\nwant the row %s", got, want)
	}
}

// TestFiguresOfProcess reads the figures of this process.
func TestFiguresOfProcess(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"RssAnon:", "VmHWM:"} {
		if n, err := memory(os.Getpid(), field); err != nil || n <= 0 {
			t.Errorf("%s %d, %v", field, n, err)
		}
	}
	if _, err := processor(os.Getpid()); err != nil {
		t.Error(err)
	}
}
