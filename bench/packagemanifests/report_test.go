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
	}}, restFigures{on: 60 << 20, off: 50 << 20, emptyOn: 40 << 20, emptyOff: 30 << 20, lease: 2500 * time.Millisecond, table: 30 * time.Millisecond, peak: 200 << 20})
	for _, want := range []string{
		"| OLM | 2.0 s | 90 ms | 1000 ms | 4000 ms | 1.50 s | 64.0 MiB | 128.0 MiB |",
		"60.0 MiB with the API and the catalog, 50.0 MiB without the API; without a catalog 40.0 MiB and 30.0 MiB",
		"3 times 10 full lists at once, its Lease was at most 2.5 s old, and a table took 30 ms (median). Its peak was 200.0 MiB resident.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("report:\n%s\nwant %s", got, want)
		}
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
