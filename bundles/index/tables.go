package index

import (
	"errors"
	"os"
)

// tableWriter collects the rows of all tables.
type tableWriter struct {
	strings stringTable
	tables  [sectionCount]rowBuffer
}

func newTableWriter(spill func() (*os.File, error)) *tableWriter {
	w := &tableWriter{strings: stringTable{known: make(map[string]uint32)}}
	for id := range w.tables {
		w.tables[id] = rowBuffer{width: widths[id], spill: spill}
	}
	return w
}

// rows returns the current number of rows of a table.
func (w *tableWriter) rows(id sectionID) uint32 {
	return uint32(w.tables[id].count()) //nolint:gosec // finish checks that rows can be counted
}

// row appends a row of four-byte numbers.
func (w *tableWriter) row(id sectionID, fields ...uint32) {
	for _, f := range fields {
		w.tables[id].u32(f)
	}
}

// parts appends places to the table of parts.
func (w *tableWriter) parts(places []place) rowRange {
	first := w.rows(sectionParts)
	for _, p := range places {
		w.row(sectionParts, p.fields()...)
	}
	return rowRange{first: first, count: uint32(len(places))} //nolint:gosec // see rows
}

// postings appends rows of entries to the table of postings.
func (w *tableWriter) postings(rows []uint32) rowRange {
	first := w.rows(sectionPostings)
	w.row(sectionPostings, rows...)
	return rowRange{first: first, count: uint32(len(rows))} //nolint:gosec // see rows
}

// close closes the temporary files.
func (w *tableWriter) close() error {
	var errs []error
	for id := range w.tables {
		errs = append(errs, w.tables[id].close())
	}
	return errors.Join(errs...)
}

// fields returns the numbers of a position in a row.
func (p place) fields() []uint32 {
	return []uint32{uint32(p.offset), uint32(p.offset >> 32), p.length} //nolint:gosec // the low half
}

// stringTable stores each name once.
type stringTable struct {
	text  []byte
	known map[string]uint32
}

// fields returns the numbers of a name in a row.
func (t *stringTable) fields(text string) []uint32 {
	at, known := t.known[text]
	if !known {
		at = uint32(len(t.text)) //nolint:gosec // finish checks the length
		t.text = append(t.text, text...)
		t.known[text] = at
	}
	return []uint32{at, uint32(len(text))} //nolint:gosec // a name
}
