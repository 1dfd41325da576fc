package index

import "strings"

// Sources returns the files that the index was created from, if its creator has recorded them.
func (q extensionQueries) Sources() []SourceFile {
	t := q.tables[sectionSources]
	out := make([]SourceFile, t.len())
	for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
		out[row] = SourceFile{
			Name:    strings.Clone(q.name(sectionSources, row, sourceName)),
			Size:    int64(t.u64(row, sourceSize)),    //nolint:gosec // bits are kept as they are
			ModTime: int64(t.u64(row, sourceModTime)), //nolint:gosec // bits are kept as they are
			Sum:     t.u64(row, sourceSum),
		}
	}
	return out
}
