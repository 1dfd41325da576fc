package depcheck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/depcheck"
)

// TestOnlyApplyWrites checks the current module.
func TestOnlyApplyWrites(t *testing.T) {
	t.Parallel()
	source, err := depcheck.Parse("../..", "supervisor")
	if err != nil {
		t.Fatal(err)
	}
	found := source.Writes("supervisor", "supervisor/apply")
	for _, problem := range depcheck.Unexpected(found, depcheck.DirectWriters(), "write with a function of supervisor/apply") {
		t.Error(problem)
	}
	if len(source.Writes("supervisor/apply", "none")) == 0 {
		t.Error("no write was found in supervisor/apply, so that the rule finds none elsewhere")
	}
}

// TestWrites finds the calls that write in a test module.
func TestWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := map[string][]string{
		"pkg/writes": {
			`err = c.Create(ctx, o)`,
			`err = r.client.Update(context.Background(), o, client.FieldOwner("x"))`,
			`err = w.as().Status().Patch(received.In(t.Context()), o, patch)`,
			`go func() { err = c.Delete(ctx, o) }()`,
			`err = c.DeleteAllOf(ctx, o)`,
			`client := r.client; err = client.Apply(ctx, o)`,
			`_, err = set.CoreV1().Pods("x").UpdateStatus(ctx, o, options)`,
			`err = (c.Create)(ctx, o)`,
		},
		"pkg/none": {
			`err = apply.Create(ctx, c, o)`,
			`list = slices.Delete(list, 0, 1)`,
			`memory.Delete(key)`,
			`body, err := change.Patch(crd)`,
			`err = c.Get(ctx, key, o)`,
			`use(version.Patch, w.create(ctx, o))`,
		},
		"pkg/apply": {`err = c.Create(ctx, o)`},
		"other":     {`err = c.Create(ctx, o)`},
	}
	want := map[string][]string{}
	for folder, statements := range lines {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		for i, statement := range statements {
			name := fmt.Sprintf("%s/%d.go", folder, i)
			code := "package pkg\n\nfunc f() {\n" + statement + "\n}\n"
			if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			if folder == "pkg/writes" {
				want[name] = []string{name + ":4"}
			}
		}
	}
	source, err := depcheck.Parse(dir, "pkg", "other")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, source.Writes("pkg", "pkg/apply")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
