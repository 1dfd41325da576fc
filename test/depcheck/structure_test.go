package depcheck_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/depcheck"
	"github.com/chandlery/chandlery/test/golist"
)

// TestStructure checks the current module.
func TestStructure(t *testing.T) {
	t.Parallel()
	packages, err := golist.Load(t.Context(), "../..", "./...")
	if err != nil {
		t.Fatalf("listing the packages of the module: %v", err)
	}
	for _, problem := range depcheck.FolderCycles(packages) {
		t.Error(problem)
	}
	for _, problem := range depcheck.TooDeep(packages, depcheck.MaxDepths()) {
		t.Error(problem)
	}
}

// module returns packages of the module by their imports, both relative to it.
func module(imports map[string][]string) []golist.Package {
	var packages []golist.Package
	for from, all := range imports {
		p := golist.Package{ImportPath: depcheck.Module + "/" + from, Imports: []string{"fmt"}}
		for _, to := range all {
			p.Imports = append(p.Imports, depcheck.Module+"/"+to)
		}
		packages = append(packages, p)
	}
	return packages
}

func TestFolderCycles(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		imports map[string][]string
		want    []string
	}{
		"Tree":  {"imports in one direction are no cycle", map[string][]string{"a/x": {"a/y", "b"}, "a/y": nil, "b": nil}, nil},
		"Below": {"a package may import one below it, and the reverse", map[string][]string{"a": {"a/x"}, "a/y": {"a"}, "a/x": nil}, nil},
		"Direct": {"packages of two folders import each other's", map[string][]string{"s/a": {"s/b/y"}, "s/b": {"s/a/x"}}, []string{
			"s/a and s/b import each other: s/a -> s/b/y", "s/b and s/a import each other: s/b -> s/a/x",
		}},
		"Indirect": {"a cycle over a third folder counts", map[string][]string{"s/a": {"s/b"}, "s/b/x": {"s/c"}, "s/c/x": {"s/a/x"}}, []string{
			"s/a and s/b import each other: s/a -> s/b", "s/b and s/c import each other: s/b/x -> s/c",
			"s/c and s/a import each other: s/c/x -> s/a/x",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, depcheck.FolderCycles(module(tc.imports))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	packages := module(map[string][]string{"s/a": {"s/c", "s/b"}, "s/b": {"s/c", "t"}, "s/c": {"t"}, "t": nil})
	if got := depcheck.TooDeep(packages, map[string]int{"s": 3, "t": 0}); len(got) > 0 {
		t.Errorf("three imports in a row are allowed: got %q", got)
	}
	want := []string{"s has 3 imports in a row, at most 2 are allowed: s/a -> s/b -> s/c -> t"}
	if diff := cmp.Diff(want, depcheck.TooDeep(packages, map[string]int{"s": 2, "t": 0})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestControllers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, code := range map[string]string{
		"s/one/setup.go":      "package one\n\nfunc Setup(m any) { ctrl.NewControllerManagedBy(m) }\n",
		"s/one/setup_test.go": "package one\n\nfunc setup(m any) { ctrl.NewControllerManagedBy(m) }\n",
		"s/two/two.go":        "package two\n\nfunc Two() { ctrl.NewManager() }\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := depcheck.Parse(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s/one"}, source.Controllers()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
