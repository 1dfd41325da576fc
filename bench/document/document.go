// Package document inserts reports of benchmarks into documents.
package document

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Insert inserts the report of a benchmark between its markers in a document, after a comment with
// its origin. The markers are the lines "<!-- NAME: begin -->" and "<!-- NAME: end -->".
func Insert(path, name, text string, origin Origin) error {
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("writing the report: %s has no lines %q and %q; add them", path, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	if err := os.WriteFile(path, []byte(before+begin+origin.String()+"\n\n"+strings.Trim(text, "\n")+"\n"+end+after), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Machine describes the environment of a measurement: processors, the load average of the last
// minute, Go's version, and the commit of the repository.
func Machine(ctx context.Context) string {
	return fmt.Sprintf("%d processors, load %s, %s, commit %s", runtime.NumCPU(), Load(), runtime.Version(), commit(ctx))
}

// Load returns the load average of the last minute as text.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	mean, _, _ := strings.Cut(string(text), " ")
	return mean
}

// commit returns the commit of the working tree, with a mark if files differ from it.
func commit(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude", "*", "--dirty=, changed").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
