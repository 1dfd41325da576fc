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
	r := &reader{mapping: m, dataEnd: h.dataEnd}
	for id := range sectionCount {
		if r.tables[id], err = section(m.bytes, h.sections[id], widths[id]); err != nil {
			return nil, unusable("section %d %s", id, err)
		}
	}
	m.checked = newBitmap(int(blocks(h.dataEnd))) //nolint:gosec // the file is smaller than that
	if err := (validator{r}).validate(); err != nil {
		return nil, err
	}
	return &Index{
		reader: r, registryQueries: registryQueries{rowFinder{r}}, extensionQueries: extensionQueries{rowFinder{r}},
		info: h.info(),
	}, nil
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

// validator checks that every reference of a table is valid.
type validator struct{ *reader }

// validate checks all tables.
func (v validator) validate() error {
	have, want := uint64(v.tables[sectionBlocks].len()), blocks(v.dataEnd) //nolint:gosec // a length is never negative
	if have != want {
		return unusable("it has checksums for %d blocks of its data instead of %d", have, want)
	}
	if err := v.validateTexts(); err != nil {
		return err
	}
	if err := v.validateRows(); err != nil {
		return err
	}
	return v.validateField(reference{sectionEntries, entryUnary}, func(t table, row uint32) bool {
		return t.u32(row, entryUnary) <= t.place(row, entryMessage).length
	})
}

// validateTexts checks the positions of names and encoded messages.
func (v validator) validateTexts() error {
	for _, f := range nameFields {
		names := uint64(len(v.tables[sectionStrings].rows))
		if err := v.validateField(f, func(t table, row uint32) bool { return t.rowsOf(row, f.field).end() <= names }); err != nil {
			return err
		}
	}
	for _, f := range dataFields {
		inside := func(t table, row uint32) bool {
			p := t.place(row, f.field)
			return p.offset >= headerSize && p.offset <= v.dataEnd && uint64(p.length) <= v.dataEnd-p.offset
		}
		if err := v.validateField(f, inside); err != nil {
			return err
		}
	}
	return nil
}

// validateRows checks that referenced rows exist.
func (v validator) validateRows() error {
	for f, to := range rowFields {
		if err := v.validateField(f, func(t table, row uint32) bool { return int(t.u32(row, f.field)) < v.tables[to].len() }); err != nil {
			return err
		}
	}
	for f, to := range optionalRowFields {
		leads := func(t table, row uint32) bool {
			at := t.u32(row, f.field)
			return at == none || int(at) < v.tables[to].len()
		}
		if err := v.validateField(f, leads); err != nil {
			return err
		}
	}
	for f, to := range rangeFields {
		count := uint64(v.tables[to].len()) //nolint:gosec // a length is never negative
		if err := v.validateField(f, func(t table, row uint32) bool { return t.rowsOf(row, f.field).end() <= count }); err != nil {
			return err
		}
	}
	return nil
}

func (v validator) validateField(f reference, holds func(table, uint32) bool) error {
	t := v.tables[f.from]
	for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
		if !holds(t, row) {
			return unusable("row %d of section %d refers to what is not there", row, f.from)
		}
	}
	return nil
}
