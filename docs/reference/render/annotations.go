package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/docs/reference/facts"
)

// annotationsPage lists labels, annotations and finalizers, as the comments of supervisor/api
// describe them.
func annotationsPage(ctx context.Context) (string, error) {
	code, err := facts.Load(ctx, ".")
	if err != nil {
		return "", fmt.Errorf("reading the code: %w", err)
	}
	names, err := code.MetadataNames()
	if err != nil {
		return "", fmt.Errorf("reading labels and annotations: %w", err)
	}
	var tables strings.Builder
	section := ""
	for _, n := range names {
		if n.Section != section {
			section = n.Section
			fmt.Fprintf(&tables, "\n## %s\n\n| Name | Kind | On | Value | Set by | Meaning |\n|---|---|---|---|---|---|\n", section)
		}
		fmt.Fprintf(&tables, "| `%s` | %s | %s | %s | %s | %s |\n", n.Name, n.Kind, inCell(n.On), cmp.Or(inCell(n.Value), "none"), n.SetBy, inCell(n.Meaning))
	}
	return fmt.Sprintf(annotationsText, tables.String()), nil
}

// annotationsText is the text around the tables.
//
//go:embed annotations.txt
var annotationsText string
