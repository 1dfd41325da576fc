package main

import (
	"fmt"
	"slices"
	"strings"
)

// report is the result of a run.
type report struct {
	intro  string
	tables []*table
	// verdicts are the results for the targets, one each.
	verdicts []verdict
}

// verdict is the result for a target.
type verdict struct {
	line, target, measured string
	holds                  bool
}

// table has a title, a header and rows with as many cells.
type table struct {
	title, note string
	header      []string
	rows        [][]string
}

// add adds a table.
func (r *report) add(title, note string, header ...string) *table {
	t := &table{title: title, note: note, header: header}
	r.tables = append(r.tables, t)
	return t
}

// row adds a row to a table.
func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// atMost adds a target with an upper limit.
func (r *report) atMost(line string, got, limit float64, format func(float64) string) {
	r.verdicts = append(r.verdicts, verdict{line, "at most " + format(limit), format(got), got <= limit})
}

// atLeast adds a target with a lower limit.
func (r *report) atLeast(line string, got, limit float64, format func(float64) string) {
	r.verdicts = append(r.verdicts, verdict{line, "at least " + format(limit), format(got), got >= limit})
}

// missed returns the targets that are not met. The other tables have the figures of those that are.
func (r *report) missed() *table {
	t := &table{title: "Targets", header: []string{"What", "Target", "Measured"}}
	for _, v := range r.verdicts {
		if !v.holds {
			t.row(v.line, v.target, v.measured)
		}
	}
	t.note = fmt.Sprintf("%d of %d targets are met.", len(r.verdicts)-len(t.rows), len(r.verdicts))
	if len(t.rows) > 0 {
		t.note += " These are not:"
	}
	return t
}

// markdown returns the missed targets and then the tables.
func (r *report) markdown() string {
	var out strings.Builder
	out.WriteString(r.intro + "\n\n")
	if len(r.verdicts) > 0 {
		r.missed().markdown(&out)
	}
	for _, t := range r.tables {
		t.markdown(&out)
	}
	return strings.TrimRight(out.String(), "\n")
}

func (t *table) markdown(out *strings.Builder) {
	out.WriteString("### " + t.title + "\n\n")
	if t.note != "" {
		out.WriteString(t.note + "\n\n")
	}
	if len(t.rows) == 0 {
		return
	}
	measured := t.measured()
	line := func(cells []string) {
		for _, i := range measured {
			out.WriteString("| " + cells[i] + " ")
		}
		out.WriteString("|\n")
	}
	line(t.header)
	out.WriteString(strings.Repeat("|---", len(measured)) + "|\n")
	for _, row := range t.rows {
		line(row)
	}
	out.WriteString("\n")
}

// measured returns the indexes of the columns in which a figure is not [missing].
func (t *table) measured() []int {
	var columns []int
	for i := range t.header {
		if slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != missing }) {
			columns = append(columns, i)
		}
	}
	return columns
}
