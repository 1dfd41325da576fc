package depcheck_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/depcheck"
)

// product returns the folders of product code.
func product() []string { return []string{"bundles", "cmd", "internal", "server", "supervisor"} }

// all returns the folders of all code.
func all() []string { return append(product(), "bench", "deploy", "docs", "examples", "test") }

// TestTypesAreSmall checks all types, those of tests too.
func TestTypesAreSmall(t *testing.T) {
	t.Parallel()
	source, err := depcheck.ParseWithTests("../..", all()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range depcheck.Oversized(source.Sizes(), depcheck.Allowances()) {
		t.Error(problem)
	}
}

// TestFunctionsAreShort checks all functions, those of tests too.
func TestFunctionsAreShort(t *testing.T) {
	t.Parallel()
	source, err := depcheck.ParseWithTests("../..", all()...)
	if err != nil {
		t.Fatal(err)
	}
	for name, lines := range source.LongFunctions() {
		t.Errorf("%s has %d lines, want at most %d: divide it", name, lines, depcheck.MaxLines)
	}
}

// TestNamesAreInOnePackage checks that labels, annotations and finalizers of this project are only
// in supervisor/api.
func TestNamesAreInOnePackage(t *testing.T) {
	t.Parallel()
	source, err := depcheck.Parse("../..", product()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, literal := range source.Literals("chandlery.dev/", "supervisor/api") {
		t.Errorf("%s: use the constant of supervisor/api", literal)
	}
}

// TestLongFunctions counts the lines of functions in a test module. Tables do not count.
func TestLongFunctions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	function := func(name string, before, inside, after int) string {
		return "func " + name + "() {\n" + strings.Repeat("\t_ = 0\n", before) + "\t_ = []int{\n" + strings.Repeat("\t\t0,\n", inside) + "\t}\n" +
			strings.Repeat("\t_ = 0\n", after) + "}\n\n"
	}
	code := "package pkg\n\n" + function("table", 30, 100, 47) + function("long", 30, 100, 48)
	if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, parse := range map[int]func(string, ...string) (*depcheck.Source, error){0: depcheck.Parse, 81: depcheck.ParseWithTests} {
		source, err := parse(dir, ".")
		if err != nil {
			t.Fatal(err)
		}
		if got := source.LongFunctions()["x_test.go:long"]; got != want || len(source.LongFunctions()) > 1 {
			t.Errorf("%v, want %d lines of the long function", source.LongFunctions(), want)
		}
	}
}

// TestOversized counts the methods and fields of types in a test module.
func TestOversized(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pkg"), 0o755); err != nil {
		t.Fatal(err)
	}
	const code = "package pkg\n\ntype a struct {\n\tb, c int\n\ta1\n}\n\ntype a1 struct{}\n\ntype g[T any] struct{ t T }\n\n" +
		"func (x *a) one() {}\n\nfunc (a) two() {}\n\nfunc (x *g[T]) three() string { return \"chandlery.dev/pin\" }\n"
	if err := os.WriteFile(filepath.Join(dir, "pkg", "x.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := depcheck.Parse(dir, "pkg")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]depcheck.Size{"pkg.a": {Methods: 2, Fields: 3}, "pkg.a1": {}, "pkg.g": {Methods: 1, Fields: 1}}
	if diff := cmp.Diff(want, source.Sizes()); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`pkg/x.go:16: "chandlery.dev/pin"`}, source.Literals("chandlery.dev/", "other")); diff != "" {
		t.Errorf("literals (-want +got):\n%s", diff)
	}
	if literals := source.Literals("chandlery.dev/", "pkg"); len(literals) > 0 {
		t.Errorf("literals of the folder that may have them: %q", literals)
	}
	for reason, tc := range map[string]struct {
		size    depcheck.Size
		allowed map[string]depcheck.Allowance
		want    int
	}{
		"as large as may be":             {size: depcheck.Size{Methods: 15, Fields: 12}},
		"too many methods":               {size: depcheck.Size{Methods: 16}, want: 1},
		"too many fields":                {size: depcheck.Size{Fields: 13}, want: 1},
		"allowed":                        {size: depcheck.Size{Methods: 20}, allowed: map[string]depcheck.Allowance{"x": {Size: depcheck.Size{Methods: 20}}}},
		"more than allowed":              {size: depcheck.Size{Methods: 21}, allowed: map[string]depcheck.Allowance{"x": {Size: depcheck.Size{Methods: 20}}}, want: 1},
		"less than allowed":              {size: depcheck.Size{Methods: 19}, allowed: map[string]depcheck.Allowance{"x": {Size: depcheck.Size{Methods: 20}}}, want: 1},
		"an allowance for no type there": {allowed: map[string]depcheck.Allowance{"y": {Size: depcheck.Size{Methods: 20}}}, want: 1},
	} {
		if got := depcheck.Oversized(map[string]depcheck.Size{"x": tc.size}, tc.allowed); len(got) != tc.want {
			t.Errorf("%s: %q, want %d problems", reason, got, tc.want)
		}
	}
}
