package index

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
)

// Open opens the index in a file: it copies a small file into memory and maps a larger one. The
// file must not be written afterwards. To replace it, rename a newer index to its name. The error
// wraps [ErrNotIndex] if the file is not a usable index, whatever its content.
func Open(name string) (*Index, error) {
	// Opening a pipe would block.
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("opening index %s: %w", name, unusable("it is not a regular file"))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening index: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	x, err := openFile(file)
	if err != nil {
		return nil, fmt.Errorf("opening index %s: %w", name, err)
	}
	return x, nil
}

func openFile(file *os.File) (*Index, error) {
	return openMapped(file, copiedFileBytes)
}

// openMapped opens an index. It copies a file of at most copied bytes.
func openMapped(file *os.File, copied int64) (x *Index, err error) {
	m, err := mapFile(file, copied)
	if err != nil {
		return nil, err
	}
	err = m.guarded(func() error {
		x, err = newIndex(m)
		return err
	})
	if errors.Is(err, ErrDamaged) {
		return nil, unusable("it changed while it was opened: %v", err)
	}
	return x, err
}

// newIndex checks everything that queries rely on, so they cannot fail even on a forged file.
func newIndex(m *mapping) (*Index, error) {
	h, err := decodeHeader(m.bytes)
	if err != nil {
		return nil, err
	}
	x := &Index{
		mapping: m, dataEnd: h.dataEnd, size: int64(len(m.bytes)), stats: h.stats,
		digest: digestText(h.contentDigest),
	}
	if h.sourceDigest != ([32]byte{}) {
		x.sourceDigest = digestText(h.sourceDigest)
	}
	for id := range sectionCount {
		if x.tables[id], err = section(m.bytes, h.sections[id], widths[id]); err != nil {
			return nil, unusable("section %d %s", id, err)
		}
	}
	m.checked = newBitmap(int(blocks(h.dataEnd))) //nolint:gosec // the file is smaller than that
	if err := x.checkTables(); err != nil {
		return nil, err
	}
	return x, nil
}

func section(file []byte, s span, width int) (table, error) {
	if s.offset > uint64(len(file)) || s.length > uint64(len(file))-s.offset {
		return table{}, errOutside
	}
	rows := file[s.offset : s.offset+s.length]
	switch {
	case len(rows)%width != 0:
		return table{}, errRagged
	case crc32.Checksum(rows, castagnoli) != s.sum:
		return table{}, errChecksum
	}
	return table{rows: rows, width: width}, nil
}

var (
	errOutside  = errors.New("lies outside of the file")
	errRagged   = errors.New("does not consist of whole rows")
	errChecksum = errors.New("is damaged")
)

// reference is a field of a table that refers to another position.
type reference struct {
	from  sectionID
	field int
}

// The fields that refer to names, to the data, to one row and to several rows.
var (
	nameFields = []reference{
		{sectionPackages, packageName},
		{sectionChannels, channelName},
		{sectionEntries, entryName},
		{sectionBundles, bundleName},
		{sectionAPIs, apiGroup},
		{sectionAPIs, apiVersion},
		{sectionAPIs, apiKind},
		{sectionReplaced, replacedName},
		{sectionCustom, customSchema},
		{sectionCustom, customPackage},
		{sectionSources, sourceName},
	}
	dataFields = []reference{
		{sectionPackages, packageListed},
		{sectionPackages, packageReply},
		{sectionPackages, packageSummary},
		{sectionEntries, entryMessage},
		{sectionBundles, bundleShared},
		{sectionParts, 0},
	}
	rowFields = map[reference]sectionID{
		{sectionChannels, channelPackage}: sectionPackages, {sectionChannels, channelHead}: sectionEntries,
		{sectionEntries, entryChannel}: sectionChannels, {sectionEntries, entryBundle}: sectionBundles,
		{sectionListed, 0}: sectionEntries, {sectionPostings, 0}: sectionEntries,
	}
	optionalRowFields = map[reference]sectionID{
		{sectionPackages, packageDefaultChannel}: sectionChannels, {sectionAPIs, apiDefault}: sectionEntries,
	}
	rangeFields = map[reference]sectionID{
		{sectionPackages, packageChannels}: sectionChannels, {sectionPackages, packageEntries}: sectionEntries,
		{sectionPackages, packageBundles}: sectionBundles, {sectionChannels, channelEntries}: sectionEntries,
		{sectionEntries, entryEdges}: sectionParts, {sectionEntries, entryInnerEdges}: sectionParts,
		{sectionBundles, bundlePayload}: sectionParts, {sectionAPIs, apiAll}: sectionPostings,
		{sectionAPIs, apiLatest}: sectionPostings, {sectionReplaced, replacedBy}: sectionPostings,
		{sectionCustom, customParts}: sectionParts,
	}
)

// checkTables checks that every reference is valid.
func (x *Index) checkTables() error {
	have, want := uint64(x.tables[sectionBlocks].len()), blocks(x.dataEnd) //nolint:gosec // a length is never negative
	if have != want {
		return unusable("it has checksums for %d blocks of its data instead of %d", have, want)
	}
	if err := x.checkTexts(); err != nil {
		return err
	}
	if err := x.checkRows(); err != nil {
		return err
	}
	return x.checkField(reference{sectionEntries, entryUnary}, func(t table, row uint32) bool {
		return t.u32(row, entryUnary) <= t.place(row, entryMessage).length
	})
}

// checkTexts checks the positions of names and encoded messages.
func (x *Index) checkTexts() error {
	for _, f := range nameFields {
		names := uint64(len(x.tables[sectionStrings].rows))
		if err := x.checkField(f, func(t table, row uint32) bool { return t.rowsOf(row, f.field).end() <= names }); err != nil {
			return err
		}
	}
	for _, f := range dataFields {
		inside := func(t table, row uint32) bool {
			p := t.place(row, f.field)
			return p.offset >= headerSize && p.offset <= x.dataEnd && uint64(p.length) <= x.dataEnd-p.offset
		}
		if err := x.checkField(f, inside); err != nil {
			return err
		}
	}
	return nil
}

// checkRows checks that referenced rows exist.
func (x *Index) checkRows() error {
	for f, to := range rowFields {
		if err := x.checkField(f, func(t table, row uint32) bool { return int(t.u32(row, f.field)) < x.tables[to].len() }); err != nil {
			return err
		}
	}
	for f, to := range optionalRowFields {
		leads := func(t table, row uint32) bool {
			at := t.u32(row, f.field)
			return at == none || int(at) < x.tables[to].len()
		}
		if err := x.checkField(f, leads); err != nil {
			return err
		}
	}
	for f, to := range rangeFields {
		count := uint64(x.tables[to].len()) //nolint:gosec // a length is never negative
		if err := x.checkField(f, func(t table, row uint32) bool { return t.rowsOf(row, f.field).end() <= count }); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) checkField(f reference, holds func(table, uint32) bool) error {
	t := x.tables[f.from]
	for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
		if !holds(t, row) {
			return unusable("row %d of section %d refers to what is not there", row, f.from)
		}
	}
	return nil
}
