package depcheck_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chandlery/chandlery/test/depcheck"
)

// TestOutputIsFiltered checks the current programs.
func TestOutputIsFiltered(t *testing.T) {
	t.Parallel()
	found, err := depcheck.UnfilteredOutput("../../cmd", "cmd")
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range found {
		t.Error(place)
	}
}

func TestUnfilteredOutput(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		folder string
		line   string
		broken bool
	}{
		"Writer":      {reason: "a command writes where it is told to", folder: "registry", line: `fmt.Fprintln(out, "a")`},
		"Main":        {reason: "main has no command to ask", folder: "registry", line: `report(terminal.NewWriter(os.Stderr))`},
		"Stdout":      {reason: "the stream of the process is not filtered", folder: "registry", line: `fmt.Fprintln(os.Stdout, "a")`, broken: true},
		"Stderr":      {reason: "nor is the other one", folder: "registry", line: `log := os.Stderr`, broken: true},
		"Print":       {reason: "it writes to the stream of the process", folder: "internal/command/lamp", line: `fmt.Printf("a")`, broken: true},
		"Builtin":     {reason: "so does this", folder: "internal/command/lamp", line: `println("a")`, broken: true},
		"Method":      {reason: "a method of this name is another matter", folder: "internal/command/lamp", line: `p.print("a")`},
		"Control":     {reason: "a command has no control sequences of its own", folder: "internal/command/lamp", line: `_ = terminal.Control("a")`, broken: true},
		"Console":     {reason: "colours are made here", folder: "internal/console", line: `_ = terminal.Control("a")`},
		"SimilarName": {reason: "a prefix of a name is not a folder", folder: "internal/consoles", line: `_ = terminal.Control("a")`, broken: true},
		"Unfiltered":  {reason: "text passes the filter", folder: "internal/command/lamp", line: `out = terminal.Unfiltered(out)`, broken: true},
		"Archive":     {reason: "an archive is not text", folder: "internal/command/supportbundle", line: `out = terminal.Unfiltered(out)`},
		"NoColours":   {reason: "the archive needs no colours", folder: "internal/command/supportbundle", line: `_ = terminal.Control("a")`, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			folder := filepath.Join(root, filepath.FromSlash(tt.folder))
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte("package a\n\nfunc a() {\n"+tt.line+"\n}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := depcheck.UnfilteredOutput(root, "cmd")
			if err != nil {
				t.Fatal(err)
			}
			if (len(found) > 0) != tt.broken {
				t.Errorf("%s: found %q", tt.reason, found)
			}
		})
	}
}
