package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	const mebi = 1 << 20
	before := []values{
		{50e6, 20e6, 60 * mebi, 30 * mebi, 20 * mebi, (2 * time.Second).Nanoseconds()},
		{50e6, 20e6, 62 * mebi, 31 * mebi, 21 * mebi, time.Second.Nanoseconds()},
		{50e6, 20e6, 99 * mebi, 32 * mebi, 22 * mebi, (3 * time.Second).Nanoseconds()},
	}
	now := []values{{57e6, 26e6, 66 * mebi, 33 * mebi, 20 * mebi, (1500 * time.Millisecond).Nanoseconds()}}
	want := `Medians of 3 rounds.

| Figure | abc | Now | More | Target |
|---|---|---|---|---|
| binary of the supervisor | 50.0 MB | 57.0 MB | 7.0 MB | at most 6.0 MB, missed |
| binary of the registry | 20.0 MB | 26.0 MB | 6.0 MB | at most 6.0 MB |
| supervisor at rest, RSS | 62.0 MiB | 66.0 MiB | 4.0 MiB | at most 6.0 MiB |
| of which private | 31.0 MiB | 33.0 MiB | 2.0 MiB |  |
| registry at rest, RSS | 21.0 MiB | 20.0 MiB | -1.0 MiB | at most 6.0 MiB |
| from the Subscription to Succeeded | 2s | 1.5s | -500ms |  |
`
	text, missed := report("abc", [2][]values{before, now})
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"binary of the supervisor"}, missed); diff != "" {
		t.Errorf("missed limits (-want +got):\n%s", diff)
	}
	if _, missed := report("abc", [2][]values{now, now}); missed != nil {
		t.Errorf("equal figures miss limits of %v", missed)
	}
}
