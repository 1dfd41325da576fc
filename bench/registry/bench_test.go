package main

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chandlery/chandlery/test/buildcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestQuick measures the sample catalog, to test the benchmark itself.
func TestQuick(t *testing.T) {
	sample, err := buildcache.SourceDir("examples/catalog")
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"--quick", "--catalog", sample, "--objects", sample, "--work", t.TempDir()}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.findPaths(t.Context()); err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	r, err := measure(t.Context(), o, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	text := r.markdown()
	for _, want := range []string{
		"cold start, JSON: times as fast as opm", "index file over the catalog as compact JSON",
		"warm start, index file: work", "private memory at rest, index file", "GetBundle, 32 callers: throughput over the floor's",
		"ListBundles: garbage per call", "GetDefaultBundleThatProvides: p50",
	} {
		if !slices.ContainsFunc(r.verdicts, func(v verdict) bool { return v.line == want }) {
			t.Errorf("no verdict about %q", want)
		}
	}
	for _, section := range r.tables {
		for _, row := range section.rows {
			if strings.Contains(strings.Join(row, " "), missing) && section.title != "Unary calls" {
				t.Errorf("%s: a figure is missing in %q", section.title, row)
			}
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", progress.String(), text)
	}
}

// TestTable checks that a table has no column without figures, and shows where single figures are missing.
func TestTable(t *testing.T) {
	table := table{title: "Lamps", header: []string{"Lamp", "bright", "opm", "dim"}}
	table.row("a", "1", missing, missing)
	table.row("b", missing, missing, "2")
	var out strings.Builder
	table.markdown(&out)
	want := "### Lamps\n\n| Lamp | bright | dim |\n|---|---|---|\n| a | 1 | n/a |\n| b | n/a | 2 |\n\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSample(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   sample
		want   float64
	}{
		"RoundByRound": {reason: "what disturbs one round disturbs both", a: sample{1, 10, 2}, b: sample{2, 20, 4}, want: 0.5},
		"Medians":      {reason: "rounds that do not correspond", a: sample{4, 2}, b: sample{6}, want: 0.5},
		"Even":         {reason: "the middle is between the two in the middle", a: sample{4, 1, 2, 100}, b: sample{1, 1, 1, 1}, want: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.over(tc.b); got != tc.want {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRenamed checks that the larger catalog consists of other packages.
func TestRenamed(t *testing.T) {
	cases := map[string]struct {
		reason, in, want string
	}{
		"Package": {
			reason: "a package is named by its name",
			in:     `{"schema":"olm.package","name":"p"}`, want: `{"name":"p-copy1","schema":"olm.package"}`,
		},
		"Channel": {
			reason: "others name the package that they belong to",
			in:     `{"schema":"olm.channel","name":"c","package":"p"}`, want: `{"name":"c","package":"p-copy1","schema":"olm.channel"}`,
		},
		"Bundle": {
			reason: "a bundle does so in a property as well",
			in: `{"schema":"olm.bundle","package":"p","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},` +
				`{"type":"x","value":{"packageName":"p"}}]}`,
			want: `{"package":"p-copy1","properties":[{"type":"olm.package","value":{"packageName":"p-copy1","version":"1.0.0"}},` +
				`{"type":"x","value":{"packageName":"p"}}],"schema":"olm.bundle"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := objects([]byte(tc.in), func(o object) error { return writeRenamed(&out, o, "-copy1") }); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(out.String()); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestWatch checks that the watcher detects memory that this process allocates.
func TestWatch(t *testing.T) {
	// Release the memory of other tests, which would be reused.
	debug.FreeOSMemory()
	before, err := memoryOf(os.Getpid())
	if err != nil && runtime.GOOS != "linux" {
		t.Skipf("%s does not show the memory of processes: %v", runtime.GOOS, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t.Context(), os.Getpid())
	held := bytes.Repeat([]byte{1}, 64*mib)
	most := w.stop()
	runtime.KeepAlive(held)
	if grown := most.private - before.private; grown < 32*mib {
		t.Errorf("saw %s more while %d bytes were taken", bytesText(grown), len(held))
	}
}
