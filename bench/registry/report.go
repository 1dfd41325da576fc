package main

import (
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

// answer returns the text for a met or missed target.
func (v verdict) answer() string {
	switch {
	case v.measured == missing:
		return "not measured"
	case v.holds:
		return "yes"
	default:
		return "**no**"
	}
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

// markdown returns the targets and then the tables.
func (r *report) markdown() string {
	var out strings.Builder
	out.WriteString(r.intro + "\n\n")
	if len(r.verdicts) > 0 {
		targets := &table{title: "Targets", header: []string{"What", "Target", "Measured", "Holds"}}
		for _, v := range r.verdicts {
			targets.row(v.line, v.target, v.measured, v.answer())
		}
		targets.markdown(&out)
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
	line := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.header)
	out.WriteString(strings.Repeat("|---", len(t.header)) + "|\n")
	for _, row := range t.rows {
		line(row)
	}
	out.WriteString("\n")
}
