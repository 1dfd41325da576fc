package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/golist"
)

func TestLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := "package a\n\nfunc FuzzRead(f *testing.F) {\n}\n\nfunc BenchmarkRead(b *testing.B) {\n}\n\n// func FuzzNot(f)\n"
	if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	packages := []golist.Package{
		{ImportPath: "m/pure", Dir: dir, TestFiles: []string{"a_test.go", "gone_test.go"}, TestDeps: []string{"fmt"}},
		{ImportPath: "m/untested", Deps: []string{builder}},
		{ImportPath: "m/suite", TestDeps: []string{"fmt", builder}},
		{ImportPath: endToEnd + "/takeover", TestDeps: []string{builder}},
		{ImportPath: endToEnd + "/install", TestDeps: []string{builder}},
		{ImportPath: realNodes + "/web", TestDeps: []string{builder}},
		{ImportPath: compatNodes, TestDeps: []string{builder}},
		{ImportPath: peers()[0], TestDeps: []string{builder}},
	}
	cases := map[string]struct {
		reason string
		class  string
		want   []string
	}{
		"Unit":  {"what a package is built of does not make its tests a suite", "unit", []string{"m/pure", "m/untested"}},
		"Long":  {"suites that take minutes are named", "long", []string{endToEnd + "/takeover", compatNodes}},
		"Short": {"needing a built program makes a suite", "short", []string{"m/suite", endToEnd + "/install"}},
		"E2E":   {"the folder makes an end-to-end suite, and the compatibility tests with a real node are one", "e2e", []string{endToEnd + "/takeover", compatNodes, endToEnd + "/install"}},
		"Nodes": {"suites on several real nodes are apart", "nodes", []string{realNodes + "/web"}},
		"Peers": {"what watches other programs is named", "peers", []string{peers()[0]}},
		"Bench": {"one line for a package with benchmarks", "bench", []string{"m/pure"}},
		"Fuzz":  {"one line for a fuzz target, none for a comment", "fuzz", []string{"m/pure FuzzRead"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := lines(tc.class, packages)
			if err != nil {
				t.Fatalf("%s: lines(%q): %v", tc.reason, tc.class, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLongTestsComeFirst(t *testing.T) {
	t.Parallel()
	long := long()
	got := longFirst([]string{"m/a", long[1], "m/b", long[0]})
	if diff := cmp.Diff([]string{long[0], long[1], "m/a", "m/b"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLinesNamesTheClasses(t *testing.T) {
	t.Parallel()
	_, err := lines("fast", nil)
	if err == nil || err.Error() != `unknown class "fast": want one of unit, long, short, e2e, nodes, peers, bench, fuzz` {
		t.Errorf("lines(fast) = %v, want an error that lists the classes", err)
	}
}
