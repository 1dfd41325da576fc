package depcheck_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxFile is the maximum size of a file in the repository, in bytes.
const maxFile = 512 << 10

// TestFilesAreSmall checks that no program is committed, and no file that makes clones slow.
func TestFilesAreSmall(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(names) < 100 {
		t.Fatalf("git lists %d files", len(names))
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case os.IsNotExist(err): // deleted, and not committed yet
		case err != nil:
			t.Error(err)
		case len(content) > maxFile:
			t.Errorf("%s has %d bytes, want at most %d", name, len(content), maxFile)
		case bytes.HasPrefix(content, []byte("\x7fELF")):
			t.Errorf("%s is a program; remove it", name)
		}
	}
}
