// Package gotool builds the programs that go.mod files pin as tools.
package gotool

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Path builds a tool of a go.mod file and returns the path of the program. The go command keeps the
// program in its cache. It reports downloads on standard error, so standard output contains only the path.
func Path(ctx context.Context, modfile, name string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile="+modfile, "-n", name)
	var report bytes.Buffer
	cmd.Stderr = &report
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, report.String())
	}
	return strings.TrimSpace(string(out)), nil
}
