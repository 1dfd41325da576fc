package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const source = `package lamp

import "testing"

func FuzzFine(f *testing.F) {
	f.Add("a")
	f.Fuzz(func(t *testing.T, text string) {})
}

func FuzzBroken(f *testing.F) {
	f.Add("a")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 3 {
			t.Error("more than three bytes")
		}
	})
}
`

func TestRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds an instrumented test program")
	}
	module := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.com/lamp\n\ngo 1.26\n", "lamp_test.go": source} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	o := options{time: 200 * time.Millisecond, minimizeTime: "1x", module: module}
	if err := run(t.Context(), o, strings.NewReader("example.com/lamp FuzzFine\n"), &out); err != nil {
		t.Errorf("a target that holds until its time is over: %v\n%s", err, &out)
	}
	// The other target still runs, and its time exceeds the time until its failure.
	o.time = time.Minute
	err := run(t.Context(), o, strings.NewReader("example.com/lamp FuzzBroken\n"), &out)
	if err == nil || !strings.Contains(err.Error(), "FuzzBroken in example.com/lamp") {
		t.Fatalf("run() = %v, want the target that fails\n%s", err, &out)
	}
	inputs, err := filepath.Glob(filepath.Join(module, "testdata", "fuzz", "FuzzBroken", "*"))
	if err != nil || len(inputs) != 1 {
		t.Errorf("failing inputs %v, %v: want one that is kept", inputs, err)
	}
	o.time = 200 * time.Millisecond
	out.Reset()
	err = run(t.Context(), o, strings.NewReader("example.com/lamp FuzzBroken\nexample.com/lamp FuzzFine\nexample.com/none FuzzNone\n"), &out)
	if err == nil || !strings.Contains(err.Error(), "FuzzBroken") || !strings.Contains(err.Error(), "example.com/none") {
		t.Errorf("run() = %v, want all that failed", err)
	}
	if !strings.Contains(out.String(), "fuzzing FuzzFine") {
		t.Errorf("a target after one that fails does not run:\n%s", &out)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		in     string
		want   []program
		fails  bool
	}{
		"Grouped": {
			"targets of a package share a program", "a FuzzA\na FuzzB\nb FuzzC\n",
			[]program{{pkg: "a", targets: []string{"FuzzA", "FuzzB"}}, {pkg: "b", targets: []string{"FuzzC"}}},
			false,
		},
		"NoTargets": {"nothing to fuzz is an error", "", nil, true},
		"NoName":    {"a line without a target is an error", "a\n", nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			targets, err := parse(strings.NewReader(tc.in))
			if (err != nil) != tc.fails {
				t.Fatalf("%s: parse() = %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, group(targets), cmp.AllowUnexported(program{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
