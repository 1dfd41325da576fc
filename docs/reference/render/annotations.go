package main

import (
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
	var lists strings.Builder
	section := ""
	for _, n := range names {
		if n.Section != section {
			section = n.Section
			fmt.Fprintf(&lists, "\n## %s\n\n", section)
		}
		meaning := n.Meaning
		if n.SetBy != "users" && n.SetBy != "supervisor" {
			meaning += " Set by: " + n.SetBy + "."
		}
		value := ""
		if n.Value != "" {
			value = ": " + n.Value
		}
		kind := n.Kind + " "
		if n.Kind == mostNames {
			kind = ""
		}
		fmt.Fprintf(&lists, "- `%s`, %son %s%s. %s\n", n.Name, kind, n.On, value, meaning)
	}
	return fmt.Sprintf(annotationsText, lists.String()), nil
}

// mostNames is the kind of names of which the lists do not state the kind.
const mostNames = "annotation"

// annotationsText is the text around the lists.
//
//go:embed annotations.txt
var annotationsText string
