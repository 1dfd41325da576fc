package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestBuild(t *testing.T) {
	dir, broken, out := t.TempDir(), t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "c"): catalog, filepath.Join(broken, "c"): catalog + catalog,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(out, "index")
	output, failed := run(t.Context(), "build", dir, "-o", file)
	if failed || !strings.Contains(output, file+": 1 package, 1 channel, 1 bundle in ") || !strings.Contains(output, ", content ") {
		t.Fatalf("output:\n%s", output)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if output, failed := run(t.Context(), "build", dir, "-o", file); failed {
		t.Fatalf("a second time:\n%s", output)
	}
	if second, err := os.ReadFile(file); err != nil || !bytes.Equal(second, first) {
		t.Errorf("the same catalog makes different files: %v", err)
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"NoOutput":  {"the flag is named", []string{"build", dir}, "name the file to write with --output"},
		"Directory": {"a file is wanted", []string{"build", dir, "-o", out}, "is a directory; name a file to write"},
		"NoParent":  {"somewhere", []string{"build", dir, "-o", filepath.Join(out, "none", "index")}, "no such file or directory"},
		"Inside":    {"the index is no part of the catalog", []string{"build", dir, "-o", filepath.Join(dir, "index")}, "lies in the catalog"},
		"Broken":    {"problems are listed", []string{"build", broken, "-o", file}, "\nregistry: c:6: package \"p\", bundle \"b\": duplicate bundle"},
		"Index":     {"an index is one already", []string{"build", file, "-o", filepath.Join(out, "other")}, "is an index file already"},
		"NoSource":  {"something is wanted", []string{"build", "-o", file}, "registry build SOURCE"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			output, failed := run(t.Context(), tc.args...)
			if !failed || !strings.Contains("\n"+output, tc.want) {
				t.Errorf("%s: failed is %v, output:\n%s", tc.reason, failed, output)
			}
		})
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, first) {
		t.Errorf("a failure changes the index: %v", err)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestBuildKeepsWhatIsNoFile checks that only regular files are replaced.
func TestBuildKeepsWhatIsNoFile(t *testing.T) {
	dir, out := writeCatalog(t, catalog), t.TempDir()
	link, pipe, socket, target := filepath.Join(out, "link"), filepath.Join(out, "pipe"), filepath.Join(out, "socket"), filepath.Join(out, "target")
	if err := os.WriteFile(target, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for name, tc := range map[string]struct{ output, want string }{
		"Link":   {link, link + " is a symbolic link, which the index would replace; name a regular file"},
		"Pipe":   {pipe, pipe + " is a named pipe"},
		"Socket": {socket, socket + " is a socket"},
		"Device": {os.DevNull, os.DevNull + " is a device"},
		"Stdout": {"-", "--output - is standard output"},
	} {
		t.Run(name, func(t *testing.T) {
			// If this fails, the test must not replace a device of this machine.
			if o := (buildOptions{output: tc.output}); o.checkOutput(dir) == nil {
				t.Fatal("it is written to")
			}
			output, failed := run(t.Context(), "build", dir, "-o", tc.output)
			if !failed || !strings.Contains(output, tc.want) {
				t.Errorf("failed is %v, output:\n%s", failed, output)
			}
		})
	}
	if text, err := os.ReadFile(link); err != nil || string(text) != "text" {
		t.Errorf("the link leads to %q, %v", text, err)
	}
}
