package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
)

// The output formats of tables.
var tableForms = []string{"table", "wide", "json", "yaml", "name"}

// table is the output of list and query.
type table struct {
	// columns are the headings. Only the wide format shows the columns from wide on.
	columns []string
	wide    int
	rows    [][]string
	// names are the rows of the format name.
	names []string
	// value is the value for JSON and YAML.
	value any
}

func (t *table) add(name string, cells ...string) {
	t.rows = append(t.rows, cells)
	t.names = append(t.names, name)
}

// printAs writes the table in a format.
func (t *table) printAs(out io.Writer, form string) error {
	switch form {
	case "table":
		return t.write(out, t.wide)
	case "wide":
		return t.write(out, len(t.columns))
	case "name":
		for _, name := range t.names {
			if _, err := fmt.Fprintln(out, bundles.OneLine(name)); err != nil {
				return fmt.Errorf("printing: %w", err)
			}
		}
		return nil
	default:
		return inspect.PrintValue(out, form, t.value)
	}
}

func (t *table) write(out io.Writer, columns int) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{t.columns}, t.rows...) {
		cells := slices.Clone(row[:columns])
		for i := range cells {
			cells[i] = bundles.OneLine(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("laying out the table: %w", err)
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

// isLocal reports whether a source is a file or directory of this machine.
func isLocal(argument string) bool {
	_, err := os.Stat(argument)
	return err == nil
}
