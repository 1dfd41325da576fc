package console

import (
	"strings"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles"
)

// Width is how many characters a line for people has at most, unless it holds something
// that must not be broken: a name, or a command.
const Width = 80

// leastColumn is how narrow a column may become.
const leastColumn = 6

// gap is what stands between two columns.
const gap = "  "

// Cell is a text in a table.
type Cell struct {
	// Text is one line.
	Text string
	// Style colours it; nil for none.
	Style func(string) string
}

// Table lays rows out in columns.
type Table struct{ rows [][]Cell }

// Add adds a row of plain texts.
func (t *Table) Add(texts ...string) {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	t.AddCells(cells...)
}

// AddCells adds a row. Texts from a cluster may hold anything: they become one line.
func (t *Table) AddCells(cells ...Cell) {
	for i := range cells {
		cells[i].Text = bundles.OneLine(cells[i].Text)
	}
	t.rows = append(t.rows, cells)
}

// Text gives the table, indented, with lines of at most a width: the widest columns
// are cut, and end with … then. Zero is no limit.
func (t *Table) Text(indent string, width int) string {
	widths := t.widths()
	if width > 0 {
		narrow(widths, width-utf8.RuneCountInString(indent))
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

// narrow takes from the widest columns until all of them fit.
func narrow(widths []int, width int) {
	total := -len(gap)
	for _, w := range widths {
		total += w + len(gap)
	}
	for ; total > width; total-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastColumn {
			return
		}
		widths[widest]--
	}
}

// cut gives as much of a text as fits.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

// Wrap gives a text in lines of at most [Width], the first of which begins with first
// and the others with rest. Words are never cut.
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
