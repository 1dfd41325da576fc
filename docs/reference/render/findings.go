package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/supervisor/explain"
)

// findingsPage lists what a diagnosis can find, in the order in which it looks.
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

// findingsText begins the page.
const findingsText = `# Findings

What ` + "`kubectl chandlery explain` and `kubectl chandlery status`" + ` ([command line](../command-line.md)) can
find, in the order in which causes are looked for. The codes are the field ` + "`code`" + ` of JSON and YAML
output and do not change; the message of a finding names the objects, and its remedy is as exact as
the case allows. Conditions, reasons and phases themselves are in [conditions](conditions.md).

| Code | Meaning | Remedy |
|---|---|---|
`
