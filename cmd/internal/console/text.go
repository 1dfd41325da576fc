package console

import (
	"strings"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles"
)

// Width is the largest number of characters of a line for people. Words that must not be broken,
// such as names and commands, may exceed it.
const Width = 80

// leastColumn is the smallest width of a column.
const leastColumn = 6

// gap separates two columns.
const gap = "  "

// Cell is a text in a table.
type Cell struct {
	// Text is one line.
	Text string
	// Style colors the text; nil for none.
	Style func(string) string
}

// Table formats rows in columns.
type Table struct {
	// Whole is the number of first columns that are never cut, such as those of names that users copy.
	Whole int

	rows [][]Cell
}

// Add adds a row of plain texts.
func (t *Table) Add(texts ...string) {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	t.AddCells(cells...)
}

// AddCells adds a row. Text from a cluster may hold anything, so each cell becomes one line.
func (t *Table) AddCells(cells ...Cell) {
	for i := range cells {
		cells[i].Text = bundles.OneLine(cells[i].Text)
	}
	t.rows = append(t.rows, cells)
}

// Text returns the table, indented, with lines of at most width characters. It cuts the widest
// columns and ends them with "…". A width of zero is no limit.
func (t *Table) Text(indent string, width int) string {
	widths := t.widths()
	if width > 0 {
		narrow(widths, t.Whole, width-utf8.RuneCountInString(indent))
	}
	var b strings.Builder
	for _, row := range t.rows {
		line, pending := indent, ""
		for i, cell := range row {
			text := cut(cell.Text, widths[i])
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if cell.Style != nil {
				text = cell.Style(text)
			}
			if text != "" {
				line, pending = line+pending+text, ""
			}
			pending += padding + gap
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	return widths
}

// narrow reduces the widest columns from the first one on that may be cut, until the row fits.
func narrow(widths []int, first, width int) {
	total := -len(gap)
	for _, w := range widths {
		total += w + len(gap)
	}
	for ; total > width && first < len(widths); total-- {
		widest := first
		for i := first; i < len(widths); i++ {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastColumn {
			return
		}
		widths[widest]--
	}
}

// cut shortens a text to a width.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

// Wrap returns a text in lines of at most [Width]. The first line begins with first and the others
// with rest. Words are never cut.
func Wrap(first, rest, text string) string {
	var b strings.Builder
	line, empty := first, true
	for word := range strings.FieldsSeq(bundles.OneLine(text)) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > Width {
			b.WriteString(line + "\n")
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(line + "\n")
	return b.String()
}
