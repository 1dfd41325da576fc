package suite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// page returns the text of the page about pipelines.
func (c *cluster) page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.root, "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testPipeline runs the script of the page.
func (c *cluster) testPipeline(t *testing.T) {
	_, after, found := strings.Cut(c.page(t), "```sh\nset -e\n")
	script, _, closed := strings.Cut(after, "```\n")
	if !found || !closed {
		t.Fatal("docs/gitops.md has no script that begins with 'set -e'")
	}
	_, log := c.exec(t, 0, exec.CommandContext(t.Context(), "bash", "-ec", script))
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		contains(t, log, "Subscription harbour/lantern has lantern.v"+version+" installed")
	}
}

// testExitCodes runs the commands in the table of the page, after the script.
func (c *cluster) testExitCodes(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `kubectl (chandlery [^`]*)` \\| (\\d) \\|").FindAllStringSubmatch(c.page(t), -1)
	if len(rows) < 4 {
		t.Fatalf("docs/gitops.md has %d commands with an exit code", len(rows))
	}
	for _, row := range rows {
		code, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(err)
		}
		c.exec(t, code, exec.CommandContext(t.Context(), c.cp.Kubectl(), strings.Fields(row[1])...))
	}
}
