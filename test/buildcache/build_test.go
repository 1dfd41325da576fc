package buildcache

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/filelock"
)

// hello returns the module of testdata in its own folder, with its own cache.
func hello(t *testing.T) Module {
	t.Helper()
	t.Setenv(RootVariable, t.TempDir())

	dir := t.TempDir()

	err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "hello")))
	if err != nil {
		t.Fatalf("copy testdata: %v", err)
	}

	return Module{
		Name:     "hello",
		Dir:      dir,
		Programs: []Program{{Name: "hello", Package: "example.com/hello", LDFlags: "-X main.who=world", Links: []string{"hi"}}},
		Files:    []File{{Name: "data/copied.txt", Module: "example.com/dep", Path: "file.txt"}},
	}
}

func build(t *testing.T, m Module) (dir, progress string) {
	t.Helper()

	var out bytes.Buffer

	dir, err := Build(t.Context(), m, &out)
	if err != nil {
		t.Fatalf("Build(...): %v", err)
	}

	return dir, out.String()
}

func TestBuildMakesProgramsAndFiles(t *testing.T) {
	dir, progress := build(t, hello(t))

	if !strings.HasPrefix(progress, "building hello (1 of 1)\nbuilt hello in ") || !strings.HasSuffix(progress, " s\n") {
		t.Errorf("progress: want a line before and after the build, got %q", progress)
	}

	for _, name := range []string{"hello", "hi"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name)).CombinedOutput()
		if err != nil {
			t.Fatalf("run the program as %s: %v", name, err)
		}

		if diff := cmp.Diff("hello world", string(out)); diff != "" {
			t.Errorf("output of the program as %s: -want, +got:\n%s", name, diff)
		}
	}

	data, err := os.ReadFile(filepath.Join(dir, "data", "copied.txt"))
	if err != nil {
		t.Fatalf("read the copied file: %v", err)
	}

	if diff := cmp.Diff("content of a file\n", string(data)); diff != "" {
		t.Errorf("copied file: -want, +got:\n%s", diff)
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("read the directory of the binaries: %v", err)
	}

	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}

	if diff := cmp.Diff([]string{"data", "hello", "hi"}, names); diff != "" {
		t.Errorf("directory of the binaries: -want, +got:\n%s", diff)
	}
}

func TestBuildAgain(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(t *testing.T, m *Module, dir string)
		rebuilt,
		elsewhere bool
	}{
		"Nothing": {
			reason: "A cached program is used as it is, and nobody is told about it.",
			change: func(*testing.T, *Module, string) {},
		},
		"MissingProgram": {
			reason: "A program that an interrupted build left out is built into the same directory.",
			change: func(t *testing.T, _ *Module, dir string) {
				t.Helper()

				err := os.Remove(filepath.Join(dir, "hello"))
				if err != nil {
					t.Fatal(err)
				}
			},
			rebuilt: true,
		},
		"Flags": {
			reason:    "Other linker flags make another program.",
			change:    func(_ *testing.T, m *Module, _ string) { m.Programs[0].LDFlags = "-X main.who=moon" },
			rebuilt:   true,
			elsewhere: true,
		},
		"Tags": {
			reason:    "Other tags make another program.",
			change:    func(_ *testing.T, m *Module, _ string) { m.Tags = []string{"extra"} },
			rebuilt:   true,
			elsewhere: true,
		},
		"Source": {
			reason: "The module's own Go files decide what is built too.",
			change: func(t *testing.T, m *Module, _ string) {
				t.Helper()
				appendTo(t, filepath.Join(m.Dir, "main.go"), "// Changed.\n")
			},
			rebuilt:   true,
			elsewhere: true,
		},
		"Requirements": {
			reason: "Other requirements make another program.",
			change: func(t *testing.T, m *Module, _ string) {
				t.Helper()
				appendTo(t, filepath.Join(m.Dir, "go.mod"), "// Changed.\n")
			},
			rebuilt:   true,
			elsewhere: true,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := hello(t)
			first, _ := build(t, m)
			tc.change(t, &m, first)
			second, progress := build(t, m)

			if got := progress != ""; got != tc.rebuilt {
				t.Errorf("%s\nrebuilt: want %t, got %t (%q)", tc.reason, tc.rebuilt, got, progress)
			}

			if got := first != second; got != tc.elsewhere {
				t.Errorf("%s\nanother directory: want %t, got %t", tc.reason, tc.elsewhere, got)
			}
		})
	}
}

// TestBuildNamedPrograms checks that only the named programs are built, and others later into the same directory.
func TestBuildNamedPrograms(t *testing.T) {
	m := hello(t)
	m.Programs = append(m.Programs, Program{Name: "other", Package: "example.com/hello"})

	first, err := Build(t.Context(), m, &bytes.Buffer{}, "other")
	if err != nil {
		t.Fatal(err)
	}

	if !exists(filepath.Join(first, "other")) || exists(filepath.Join(first, "hello")) {
		t.Errorf("programs in %s: want only the named one", first)
	}

	second, progress := build(t, m)
	if second != first || !strings.HasPrefix(progress, "building hello (1 of 1)\n") {
		t.Errorf("later build: want the missing program in %s, got %s, %q", first, second, progress)
	}
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()

	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	err = os.WriteFile(name, append(data, text...), 0o644)
	if err != nil {
		t.Fatal(err)
	}
}

func TestBuildAtOnce(t *testing.T) {
	m := hello(t)

	var wait sync.WaitGroup

	dirs := make([]string, 4)
	failures := make([]error, len(dirs))

	for i := range dirs {
		wait.Go(func() { dirs[i], failures[i] = Build(t.Context(), m, &bytes.Buffer{}) })
	}

	wait.Wait()

	for i, dir := range dirs {
		if failures[i] != nil || dir != dirs[0] {
			t.Errorf("Build number %d: want %q, got %q, %v", i, dirs[0], dir, failures[i])
		}
	}
}

func TestBuildSaysWhatWentWrong(t *testing.T) {
	m := hello(t)
	m.Programs = append(m.Programs, Program{Name: "broken", Package: "example.com/hello/broken"})

	var progress bytes.Buffer

	_, err := Build(t.Context(), m, &progress)

	var failed *BuildError
	if !errors.As(err, &failed) {
		t.Fatalf("Build(...): want a *BuildError, got %v", err)
	}

	if diff := cmp.Diff("example.com/hello/broken", failed.Package); diff != "" {
		t.Errorf("package: -want, +got:\n%s", diff)
	}

	if !strings.Contains(failed.Output, "undefined: thisNameIsDeclaredNowhere") {
		t.Errorf("output: want the compiler's message, got %q", failed.Output)
	}

	if !strings.HasSuffix(progress.String(), "building broken (2 of 2)\ncould not build broken\n") {
		t.Errorf("progress: want the failure, got %q", progress.String())
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	m := hello(t)

	digest, err := goOutput(t.Context(), m, "env", "GOVERSION")
	if err != nil {
		t.Fatal(err)
	}

	digest, err = key(m, digest)
	if err != nil {
		t.Fatal(err)
	}

	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}

	held, err := filelock.Try(filepath.Join(root, m.Name, digest+".lock"))
	if err != nil {
		t.Fatal(err)
	}

	defer held.Release()

	ctx, cancel := context.WithCancelCause(t.Context())
	errBoom := errors.New("boom")

	// Interrupt the build when it reports that it waits.
	_, err = Build(ctx, m, writerFunc(func(p []byte) (int, error) {
		cancel(errBoom)

		return len(p), nil
	}))
	if !errors.Is(err, errBoom) {
		t.Errorf("Build(...) while another holds the lock: want %v, got %v", errBoom, err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
