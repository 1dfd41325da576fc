package index

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
)

// An index file begins with a header of fixed size. The data area follows, with encoded messages.
// It is divided into blocks, each with a checksum. The sections follow: tables of rows of fixed
// width, in search order. Rows refer to other rows and to positions in the data. All numbers are
// little-endian.
//
// A reader checks header and sections when it opens the file, which takes milliseconds. It checks
// each block of the data on first use.
const (
	magic = "CHNDLRYX"
	// formatVersion changes with every change of the layout or of the encoding of messages. A file
	// of another version is not read. Rebuilding the index is faster than a conversion would be.
	formatVersion = 1

	headerSize  = 512
	sectionSize = 24
	sectionsAt  = 160
	// blockSize is the size of the data with one checksum.
	blockSize = 64 << 10
	// maxFileBytes bounds the size of a mapped file.
	maxFileBytes = 1 << 40
)

// castagnoli is the polynomial for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sectionID identifies a table of the file.
type sectionID int

const (
	sectionStrings sectionID = iota
	sectionPackages
	sectionChannels
	sectionEntries
	sectionBundles
	sectionParts
	sectionListed
	sectionAPIs
	sectionReplaced
	sectionPostings
	sectionCustom
	sectionSources
	sectionBlocks
	sectionCount
)

// widths are the sizes of the rows, in bytes.
var widths = [sectionCount]int{
	sectionStrings:  1,
	sectionPackages: 76,
	sectionChannels: 24,
	sectionEntries:  48,
	sectionBundles:  32,
	sectionParts:    12,
	sectionListed:   4,
	sectionAPIs:     44,
	sectionReplaced: 16,
	sectionPostings: 4,
	sectionCustom:   24,
	sectionSources:  32,
	sectionBlocks:   4,
}

// none is the row number of an empty reference.
const none = ^uint32(0)

// ErrNotIndex is returned for a file that is not an index for this program: of another kind or
// version, truncated or damaged. The remedy is to rebuild the index.
var ErrNotIndex = errors.New("not a usable index")

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotIndex, fmt.Sprintf(format, args...))
}

// header is the beginning of a file.
type header struct {
	size          uint64
	dataEnd       uint64
	contentDigest [32]byte
	sourceDigest  [32]byte
	stats         Stats
	sections      [sectionCount]span
}

// span is the position of a section and its checksum.
type span struct {
	offset, length uint64
	sum            uint32
}

func (h *header) encode() []byte {
	out := make([]byte, 0, headerSize)
	out = append(out, magic...)
	out = binary.LittleEndian.AppendUint32(out, formatVersion)
	out = binary.LittleEndian.AppendUint32(out, 0) // the checksum
	out = binary.LittleEndian.AppendUint64(out, h.size)
	out = binary.LittleEndian.AppendUint64(out, h.dataEnd)
	out = append(out, h.contentDigest[:]...)
	out = append(out, h.sourceDigest[:]...)
	for _, n := range []int64{
		int64(h.stats.Packages), int64(h.stats.Channels), int64(h.stats.Bundles), int64(h.stats.Entries), h.stats.Bytes,
	} {
		out = binary.LittleEndian.AppendUint64(out, uint64(n)) //nolint:gosec // counts are never negative
	}
	out = out[:sectionsAt]
	for _, s := range h.sections {
		out = binary.LittleEndian.AppendUint64(out, s.offset)
		out = binary.LittleEndian.AppendUint64(out, s.length)
		out = binary.LittleEndian.AppendUint32(out, s.sum)
		out = binary.LittleEndian.AppendUint32(out, 0)
	}
	out = out[:headerSize]
	binary.LittleEndian.PutUint32(out[12:], crc32.Checksum(out, castagnoli))
	return out
}

// decodeHeader decodes the header of a file.
func decodeHeader(file []byte) (*header, error) {
	if len(file) < len(magic) || string(file[:len(magic)]) != magic {
		return nil, unusable("it is a file of another kind")
	}
	if len(file) < headerSize {
		return nil, unusable("it ends within its header")
	}
	if version := binary.LittleEndian.Uint32(file[8:]); version != formatVersion {
		return nil, unusable("its format has version %d, this program reads version %d", version, formatVersion)
	}
	zeroed := append([]byte(nil), file[:headerSize]...)
	clear(zeroed[12:16])
	if binary.LittleEndian.Uint32(file[12:]) != crc32.Checksum(zeroed, castagnoli) {
		return nil, unusable("its header is damaged")
	}
	h := &header{size: binary.LittleEndian.Uint64(file[16:]), dataEnd: binary.LittleEndian.Uint64(file[24:])}
	copy(h.contentDigest[:], file[32:])
	copy(h.sourceDigest[:], file[64:])
	count := func(i int) int64 { return int64(binary.LittleEndian.Uint64(file[96+8*i:])) } //nolint:gosec // checksummed
	h.stats = Stats{
		Packages: int(count(0)), Channels: int(count(1)), Bundles: int(count(2)), Entries: int(count(3)), Bytes: count(4),
	}
	if h.size != uint64(len(file)) {
		return nil, unusable("it has %d bytes instead of %d", len(file), h.size)
	}
	if h.dataEnd < headerSize || h.dataEnd > h.size {
		return nil, unusable("its data lies outside of the file")
	}
	for i := range h.sections {
		at := file[sectionsAt+i*sectionSize:]
		h.sections[i] = span{
			offset: binary.LittleEndian.Uint64(at), length: binary.LittleEndian.Uint64(at[8:]),
			sum: binary.LittleEndian.Uint32(at[16:]),
		}
	}
	return h, nil
}

// info returns the description of the index.
func (h *header) info() Info {
	info := Info{
		Stats: h.stats, ContentDigest: digestText(h.contentDigest), Format: formatVersion,
		FileBytes: int64(h.size), //nolint:gosec // the size of a file
	}
	if h.sourceDigest != ([32]byte{}) {
		info.SourceDigest = digestText(h.sourceDigest)
	}
	return info
}

// digestText returns a digest in hexadecimal digits.
func digestText(digest [32]byte) string { return hex.EncodeToString(digest[:]) }

// table is a section: rows of the same width.
type table struct {
	rows  []byte
	width int
}

func (t table) len() int { return len(t.rows) / t.width }

// u32 and u64 read a field of a row.
func (t table) u32(row uint32, field int) uint32 {
	return binary.LittleEndian.Uint32(t.rows[int(row)*t.width+field:])
}

func (t table) u64(row uint32, field int) uint64 {
	return binary.LittleEndian.Uint64(t.rows[int(row)*t.width+field:])
}

// place reads a position in the data: offset and length.
func (t table) place(row uint32, field int) place {
	return place{offset: t.u64(row, field), length: t.u32(row, field+8)}
}

// rowsOf reads a range of rows of another table.
func (t table) rowsOf(row uint32, field int) rowRange {
	return rowRange{first: t.u32(row, field), count: t.u32(row, field+4)}
}

// place is a position in the file.
type place struct {
	offset uint64
	length uint32
}

func (p place) end() uint64 { return p.offset + uint64(p.length) }

// rowRange is a range of consecutive rows.
type rowRange struct{ first, count uint32 }

func (r rowRange) end() uint64 { return uint64(r.first) + uint64(r.count) }

// The fields of the rows, by their offsets. A name is a position in the strings: offset and length,
// four bytes each.
const (
	packageName           = 0
	packageDefaultChannel = 8 // row, or none
	packageChannels       = 12
	packageEntries        = 20
	packageBundles        = 28
	packageListed         = 36 // the answer of ListPackages
	packageReply          = 48 // the answer of GetPackage
	packageSummary        = 60

	channelName    = 0
	channelPackage = 8
	channelHead    = 12 // row of the entry
	channelEntries = 16

	entryName       = 0
	entryChannel    = 8
	entryBundle     = 12
	entryMessage    = 16 // the fields that depend on the channel
	entryUnary      = 28 // the part of them in the answers of the unary RPCs
	entryEdges      = 32 // parts
	entryInnerEdges = 40 // parts

	bundleName    = 0
	bundleShared  = 8 // the fields that are equal in all channels
	bundlePayload = 20
	bundleInline  = 28 // whether the payload is listed

	apiGroup   = 0
	apiVersion = 8
	apiKind    = 16
	apiAll     = 24 // postings
	apiLatest  = 32 // postings
	apiDefault = 40 // row of the entry, or none

	replacedName = 0
	replacedBy   = 8 // postings

	customSchema  = 0
	customPackage = 8
	customParts   = 16

	sourceName    = 0
	sourceSize    = 8
	sourceModTime = 16 // nanoseconds since 1970
	sourceSum     = 24
)
