package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/supervisor/explain"
)

// findingsPage lists the findings of explain and status, in the order in which the commands look
// for causes.
func findingsPage(context.Context) (string, error) {
	var page strings.Builder
	page.WriteString(findingsText)
	for _, code := range explain.Codes() {
		if code.Meaning == "" || code.Remedy == "" {
			return "", fmt.Errorf("%w: %s", errBareCode, code.Code)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", code.Code, inCell(code.Meaning), inCell(code.Remedy))
	}
	return page.String(), nil
}

var errBareCode = errors.New("a code without meaning or remedy")

// findingsText is the introduction of the page.
const findingsText = `# Findings

This page lists the findings of ` + "[`explain`](../command-line.md#explain) and `status`" + `. In JSON and YAML output, the field
` + "`code`" + ` contains the code, which does not change between releases. Remedies in the output are often more specific.

| Code | Meaning | Remedy |
|---|---|---|
`
