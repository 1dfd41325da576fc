package index

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
)

// writer writes the file of an index: first the data of each package, then the sections and the
// header. Packages come in byte order of their names. The file depends only on what is added.
type writer struct {
	*tableWriter

	data    *blockWriter
	keys    searchKeys
	stats   Stats
	digests []byte
}

// newWriter returns a writer. Data that does not fit into memory goes to files that spill creates;
// if spill is nil, everything stays in memory.
func newWriter(out io.WriteSeeker, spill func() (*os.File, error)) (*writer, error) {
	w := &writer{
		tableWriter: newTableWriter(spill), keys: newSearchKeys(),
		data: &blockWriter{out: bufio.NewWriterSize(out, 256<<10), offset: headerSize},
	}
	// The header is written last. Until then the file is not an index.
	if _, err := out.Write(make([]byte, headerSize)); err != nil {
		return nil, fmt.Errorf("writing index: %w", err)
	}
	return w, nil
}

// addPart writes the content of one package.
func (w *writer) addPart(p *encodedPart) error {
	if p.pkg != nil {
		if err := w.add(p.pkg); err != nil {
			return err
		}
	}
	for i := range p.custom {
		if err := w.addCustom(&p.custom[i]); err != nil {
			return err
		}
	}
	return nil
}

// add writes the content of a package: the manifests first, then the data of lists, close together.
func (w *writer) add(p *encodedPackage) error {
	payloads, err := w.payloads(p.bundles)
	if err != nil {
		return err
	}
	firstChannel, firstEntry, firstBundle := w.rows(sectionChannels), w.rows(sectionEntries), w.rows(sectionBundles)
	bundleRows := make(map[*encodedBundle]uint32, len(p.bundles))
	for i, b := range p.bundles {
		bundleRows[b] = w.rows(sectionBundles)
		if err := w.bundle(b, payloads[i]); err != nil {
			return err
		}
	}
	standard := none
	for i := range p.channels {
		ch := &p.channels[i]
		if ch.name == p.defaultChannel && standard == none {
			standard = w.rows(sectionChannels)
		}
		if err := w.channel(p, ch, bundleRows); err != nil {
			return err
		}
	}
	var replies []uint32
	for _, message := range [][]byte{p.listed, p.reply, p.summary} {
		at, err := w.data.append(message)
		if err != nil {
			return err
		}
		replies = append(replies, at.fields()...)
	}
	w.row(sectionPackages, w.strings.fields(p.name)...)
	w.row(sectionPackages, standard,
		firstChannel, w.rows(sectionChannels)-firstChannel,
		firstEntry, w.rows(sectionEntries)-firstEntry,
		firstBundle, w.rows(sectionBundles)-firstBundle)
	w.row(sectionPackages, replies...)
	w.row(sectionPackages, 0)
	w.digests = append(w.digests, p.digest[:]...)
	w.stats.Packages++
	w.stats.Channels += len(p.channels)
	w.stats.Bundles += len(p.bundles)
	return nil
}

// payloads writes the manifests of a package's bundles and returns the positions of the parts of
// each. Repeated parts are written once.
func (w *writer) payloads(all []*encodedBundle) ([][]place, error) {
	out := make([][]place, len(all))
	known := make(map[[32]byte]place)
	for i, b := range all {
		for _, one := range b.payload {
			at, err := w.piece(one, known)
			if err != nil {
				return nil, err
			}
			// Adjacent positions form one part.
			if n := len(out[i]); n > 0 && out[i][n-1].end() == at.offset {
				out[i][n-1].length += at.length
				continue
			}
			out[i] = append(out[i], at)
		}
	}
	return out, nil
}

func (w *writer) piece(one piece, known map[[32]byte]place) (place, error) {
	if one.sum == ([32]byte{}) {
		return w.data.append(one.bytes)
	}
	if at, ok := known[one.sum]; ok {
		return at, nil
	}
	at, err := w.data.append(one.bytes)
	known[one.sum] = at
	return at, err
}

func (w *writer) bundle(b *encodedBundle, payload []place) error {
	facts, err := w.data.append(b.facts)
	if err != nil {
		return err
	}
	parts := w.parts(payload)
	w.row(sectionBundles, w.strings.fields(b.name)...)
	w.row(sectionBundles, facts.fields()...)
	w.row(sectionBundles, parts.first, parts.count, truth(b.inline))
	return nil
}

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (w *writer) channel(p *encodedPackage, ch *encodedChannel, bundleRows map[*encodedBundle]uint32) error {
	first := w.rows(sectionEntries)
	messages := make([]place, len(ch.entries))
	for i := range ch.entries {
		var err error
		if messages[i], err = w.data.append(ch.entries[i].message); err != nil {
			return err
		}
	}
	for i := range ch.entries {
		e, row := &ch.entries[i], w.rows(sectionEntries)
		edges, err := w.messages(e.edges)
		if err != nil {
			return err
		}
		inner, err := w.messages(e.innerEdges)
		if err != nil {
			return err
		}
		w.row(sectionEntries, w.strings.fields(e.bundle.name)...)
		w.row(sectionEntries, w.rows(sectionChannels), bundleRows[e.bundle])
		w.row(sectionEntries, messages[i].fields()...)
		w.row(sectionEntries, uint32(e.unary), edges.first, edges.count, inner.first, inner.count) //nolint:gosec // part of a message
		w.keys.addReplaced(e, row)
		w.keys.addProvider(e.bundle.provided, row, i == ch.head, ch.name == p.defaultChannel)
		w.stats.Entries++
	}
	count := uint32(len(ch.entries)) //nolint:gosec // see rows
	w.keys.channels = append(w.keys.channels, listedChannel{name: ch.name, entries: rowRange{first: first, count: count}})
	w.row(sectionChannels, w.strings.fields(ch.name)...)
	w.row(sectionChannels, w.rows(sectionPackages), first+uint32(ch.head), first, count) //nolint:gosec // see rows
	return nil
}

// messages appends messages to the data, each as one part.
func (w *writer) messages(messages [][]byte) (rowRange, error) {
	places := make([]place, len(messages))
	for i, message := range messages {
		var err error
		if places[i], err = w.data.append(message); err != nil {
			return rowRange{}, err
		}
	}
	return w.parts(places), nil
}

// addCustom writes an object of a custom schema.
func (w *writer) addCustom(c *encodedCustom) error {
	at, err := w.data.append(c.message)
	if err != nil {
		return err
	}
	key := customKey{schema: c.schema, pkg: c.pkg}
	w.keys.custom[key] = append(w.keys.custom[key], at)
	h := sha256.New()
	for _, part := range [][]byte{[]byte(c.schema), []byte(c.pkg), c.message} {
		writeSized(h, part)
	}
	w.digests = h.Sum(w.digests)
	return nil
}

// addSources records the source files of the index.
func (w *writer) addSources(files []SourceFile) {
	for i := range files {
		w.row(sectionSources, w.strings.fields(files[i].Name)...)
		for _, n := range []uint64{uint64(files[i].Size), uint64(files[i].ModTime), files[i].Sum} { //nolint:gosec // bits are kept as they are
			w.tables[sectionSources].u64(n)
		}
	}
}

// finish writes the sections and the header.
func (w *writer) finish(out io.WriteSeeker, source [32]byte) error {
	w.keys.write(w.tableWriter)
	sums := w.data.finish()
	h := &header{
		dataEnd: w.data.offset, contentDigest: sha256.Sum256(w.digests), sourceDigest: source, stats: w.stats,
	}
	h.stats.Bytes = int64(w.data.offset - headerSize) //nolint:gosec // bytes that were written
	w.tables[sectionStrings].pending = w.strings.text
	for _, sum := range sums {
		w.row(sectionBlocks, sum)
	}
	offset := w.data.offset
	for id := range w.tables {
		rows := &w.tables[id]
		if rows.count() > math.MaxUint32-1 {
			return errTooManyRows
		}
		sum := crc32.New(castagnoli)
		if err := rows.writeTo(io.MultiWriter(w.data.out, sum)); err != nil {
			return err
		}
		h.sections[id] = span{offset: offset, length: uint64(rows.size()), sum: sum.Sum32()} //nolint:gosec // a size is never negative
		offset += h.sections[id].length
	}
	h.size = offset
	if err := w.data.out.Flush(); err != nil {
		return fmt.Errorf("writing index: %w", err)
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("writing index: %w", err)
	}
	if _, err := out.Write(h.encode()); err != nil {
		return fmt.Errorf("writing index: %w", err)
	}
	return nil
}

// blockWriter writes the data area and computes the checksums of its blocks.
type blockWriter struct {
	out    *bufio.Writer
	offset uint64
	sums   []uint32
	sum    uint32
	filled int
}

// append writes bytes and returns their position.
func (w *blockWriter) append(bytes []byte) (place, error) {
	if len(bytes) > math.MaxUint32 {
		return place{}, errTooLong
	}
	if _, err := w.out.Write(bytes); err != nil {
		return place{}, fmt.Errorf("writing index: %w", err)
	}
	at := place{offset: w.offset, length: uint32(len(bytes))} //nolint:gosec // checked
	w.offset += uint64(len(bytes))
	for len(bytes) > 0 {
		n := min(len(bytes), blockSize-w.filled)
		w.sum = crc32.Update(w.sum, castagnoli, bytes[:n])
		w.filled += n
		bytes = bytes[n:]
		if w.filled == blockSize {
			w.sums = append(w.sums, w.sum)
			w.sum, w.filled = 0, 0
		}
	}
	return at, nil
}

// finish returns the checksums of all blocks.
func (w *blockWriter) finish() []uint32 {
	if w.filled > 0 {
		w.sums = append(w.sums, w.sum)
		w.sum, w.filled = 0, 0
	}
	return w.sums
}

var (
	errTooLong     = fmt.Errorf("a message has more than %d bytes", uint32(math.MaxUint32))
	errTooManyRows = fmt.Errorf("more than %d rows in a table", uint32(math.MaxUint32-1))
)
