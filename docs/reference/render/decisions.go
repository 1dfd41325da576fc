package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// decisionsDir holds one file for each decision. The first line of the file is the title.
const decisionsDir = "docs/decisions"

// decisionsPage lists the decisions in the order of their file names.
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

// decisionsText is the introduction of the page.
const decisionsText = `# Decisions

Why things are as they are, one page each.

`
