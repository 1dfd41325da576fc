package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// decisionsDir holds the decisions, one a file, whose first line is its title.
const decisionsDir = "docs/decisions"

// decisionsPage lists the decisions in their order.
func decisionsPage(context.Context) (string, error) {
	files, err := filepath.Glob(filepath.Join(decisionsDir, "[0-9]*.md"))
	if err != nil {
		return "", fmt.Errorf("looking for decisions: %w", err)
	}
	var page strings.Builder
	page.WriteString(decisionsText)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading a decision: %w", err)
		}
		title, _, _ := bytes.Cut(text, []byte("\n"))
		fmt.Fprintf(&page, "- [%s](%s)\n", bytes.TrimPrefix(title, []byte("# ")), filepath.Base(file))
	}
	return page.String(), nil
}

// decisionsText begins the page.
const decisionsText = `# Decisions

Why things are as they are, one page each: what was to be decided, what was decided, and what follows.

`
