// Package helm builds the pinned helm for tests.
package helm

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chandlery/chandlery/test/buildcache"
)

// Program returns the path of the program. It is built once.
func Program() (string, error) { return program() }

var program = sync.OnceValues(func() (string, error) {
	dir, err := buildcache.SourceDir("tools/helm")
	if err != nil {
		return "", fmt.Errorf("building helm: %w", err)
	}
	return Tool(filepath.Join(dir, "go.mod"), "helm")
})

// Tool builds a tool of a go.mod file and returns its path. The go command reports downloads on
// standard error, so standard output contains only the path.
func Tool(modfile, name string) (string, error) {
	ctx := context.Background() //nolint:forbidigo // It is built once for all tests, and outlives the first.
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile="+modfile, "-n", name)
	var report bytes.Buffer
	cmd.Stderr = &report
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, report.String())
	}
	return strings.TrimSpace(string(out)), nil
}
