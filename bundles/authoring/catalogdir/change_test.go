package catalogdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles/fbc"
)

// snapshot returns the contents of all files and folders below a directory.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			all[path] = "folder"
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func catalog(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	if err := os.MkdirAll(filepath.Join(dir, "p"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "p", "a.yaml"), []byte("a: 1\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	return dir
}

func begin(t *testing.T, dir string) *Change {
	t.Helper()
	c, err := Begin(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func put(t *testing.T, c *Change) {
	t.Helper()
	for name, text := range map[string]string{"p/a.yaml": "a: 2\n", "q/r/b.yaml": "b: 1\n"} {
		if err := c.Put(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCommit(t *testing.T) {
	dir := catalog(t)
	c := begin(t, dir)
	put(t, c)
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		filepath.Dir(dir): "folder", dir: "folder", dir + "/p": "folder", dir + "/q": "folder", dir + "/q/r": "folder",
		dir + "/p/a.yaml": "a: 2\n", dir + "/q/r/b.yaml": "b: 1\n",
	}
	if diff := cmp.Diff(want, snapshot(t, filepath.Dir(dir))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(dir, "p", "a.yaml"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("permissions: %v, %v", info.Mode(), err)
	}
}

// TestInterrupted interrupts a change after each of its steps, as the end of a killed process would.
func TestInterrupted(t *testing.T) {
	for name, stop := range map[string]func(t *testing.T, c *Change){
		"Prepared": func(t *testing.T, c *Change) {
			t.Helper()
			if _, err := c.prepare(0, "p/a.yaml"); err != nil {
				t.Fatal(err)
			}
		},
		"Planned": func(t *testing.T, c *Change) {
			t.Helper()
			first, err := c.prepare(0, "p/a.yaml")
			second, err2 := c.prepare(1, "q/r/b.yaml")
			if err := errors.Join(err, err2, c.writePlan([]step{first, second})); err != nil {
				t.Fatal(err)
			}
		},
		"Renamed": func(t *testing.T, c *Change) {
			t.Helper()
			if err := c.apply(); err != nil {
				t.Fatal(err)
			}
		},
		"HalfRenamed": func(t *testing.T, c *Change) {
			t.Helper()
			if err := errors.Join(c.apply(), os.RemoveAll(filepath.Join(c.dir, "q"))); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := catalog(t)
			before := snapshot(t, filepath.Dir(dir))
			c := begin(t, dir)
			put(t, c)
			if err := c.stage(); err != nil {
				t.Fatal(err)
			}
			stop(t, c)
			if files, err := fbc.Files(os.DirFS(dir)); err != nil || slices.ContainsFunc(files, inStaging) {
				t.Errorf("the catalog has the files %v, error %v", files, err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			begin(t, dir)
			if diff := cmp.Diff(before, snapshot(t, filepath.Dir(dir))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func inStaging(name string) bool { return strings.HasPrefix(name, ".catalog-change/") }

// TestEditedSince edits a file after its change was interrupted and checks that the edit is not undone.
func TestEditedSince(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(dir string) error
	}{
		"Edited":  {"the content is neither the old nor the new one", func(dir string) error { return os.WriteFile(dir+"/p/a.yaml", []byte("a: 3\n"), 0o600) }},
		"Deleted": {"the file was there before and after the change", func(dir string) error { return os.Remove(dir + "/p/a.yaml") }},
		"New":     {"a file that the change created has another content", func(dir string) error { return os.WriteFile(dir+"/q/r/b.yaml", nil, 0o600) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := catalog(t)
			c := begin(t, dir)
			put(t, c)
			if err := errors.Join(c.stage(), c.apply(), c.Close(), tc.edit(dir)); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, dir)
			if _, err := Begin(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "has been edited since; delete the folder "+c.staging()) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if err := os.RemoveAll(c.staging()); err != nil {
				t.Fatal(err)
			}
			begin(t, dir)
		})
	}
}

// TestFails checks that nothing changes if a file cannot be written.
func TestFails(t *testing.T) {
	dir := catalog(t)
	before := snapshot(t, filepath.Dir(dir))
	c := begin(t, dir)
	put(t, c)
	if err := c.Put("p/a.yaml/below-a-file.yaml", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(); err == nil {
		t.Fatal("a file became a folder")
	}
	if diff := cmp.Diff(before, snapshot(t, filepath.Dir(dir))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOutside(t *testing.T) {
	c := begin(t, catalog(t))
	for _, name := range []string{"../x", "/x", ".", "a/../b"} {
		if err := c.Put(name, nil); !errors.Is(err, errOutside) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestConcurrent adds many lines to one file concurrently.
func TestConcurrent(t *testing.T) {
	dir := catalog(t)
	var group errgroup.Group
	const lines = 20
	for i := range lines {
		group.Go(func() (err error) {
			c, err := Begin(t.Context(), dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, c.Close()) }()
			text, err := c.Read("p/a.yaml")
			if err != nil {
				return err
			}
			return errors.Join(c.Put("p/a.yaml", fmt.Appendf(text, "l%d: 1\n", i)), c.Commit())
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if text := snapshot(t, dir)[dir+"/p/a.yaml"]; strings.Count(text, "\n") != lines+1 {
		t.Errorf("lines are missing:\n%s", text)
	}
}

// TestWaits checks that Begin ends with its context while another process has the lock.
func TestWaits(t *testing.T) {
	dir := catalog(t)
	begin(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Begin(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
