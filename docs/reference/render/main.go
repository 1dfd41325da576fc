// Command render writes the generated pages of docs/reference, and the list of decisions beside it,
// into a folder (default docs/reference). It is the last step of `make generate`. It takes commands
// and flags from the programs, metrics from the type-checked code, and services and messages from
// the compiled contracts. It fails if something has no description.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	dir := flag.String("output", "docs/reference", "folder to write the pages to")
	flag.Parse()
	if err := render(context.Background(), *dir); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

// generated is the first line of each page.
const generated = "<!-- Made by `make generate`. -->\n\n"

// render writes all pages.
func render(ctx context.Context, dir string) error {
	pages := map[string]func(context.Context) (string, error){
		"metrics.md": metricsPage, "api.md": apiPage, "api-chandlery.md": extensionPage, "findings.md": findingsPage,
		"annotations.md":         annotationsPage,
		"../decisions/README.md": decisionsPage, "../compatibility.md": compatibilityPage,
	}
	for _, program := range programs() {
		pages[program.page()] = program.reference
	}
	for name, page := range pages {
		text, err := page(ctx)
		if err != nil {
			return fmt.Errorf("making %s: %w", name, err)
		}
		text = generated + strings.TrimSpace(text) + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // it is committed
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// output runs the go command and returns what it prints.
func output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}
