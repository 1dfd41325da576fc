package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
)

// ErrDamaged is returned if the data of an index differs from what was written. The remedy is to
// rebuild the index.
var ErrDamaged = errors.New("the index is damaged")

// bitmap is a set of block numbers that only grows.
type bitmap []atomic.Uint32

func newBitmap(bits int) bitmap { return make(bitmap, (bits+31)/32) }

func (b bitmap) has(bit uint64) bool { return b[bit/32].Load()&(1<<(bit%32)) != 0 }

func (b bitmap) add(bit uint64) { b[bit/32].Or(1 << (bit % 32)) }

// check returns an error unless some data is intact. It checks each block once.
func (r *reader) check(p place) error {
	if p.length == 0 {
		return nil
	}
	last := (p.end() - headerSize - 1) / blockSize
	for block := (p.offset - headerSize) / blockSize; block <= last; block++ {
		if r.mapping.checked.has(block) {
			continue
		}
		if err := r.checkBlock(block); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) checkBlock(block uint64) error {
	from := headerSize + block*blockSize
	to := min(from+blockSize, r.dataEnd)
	if r.mapping.file != nil {
		willNeed(r.mapping.bytes, from, to)
	}
	err := r.mapping.guarded(func() error {
		want := binary.LittleEndian.Uint32(r.tables[sectionBlocks].rows[4*block:])
		if crc32.Checksum(r.mapping.bytes[from:to], castagnoli) != want {
			return fmt.Errorf("%w: bytes %d to %d differ from what was written", ErrDamaged, from, to)
		}
		return nil
	})
	if err == nil {
		r.mapping.checked.add(block)
	}
	return err
}

// Check checks all data that has not been checked yet and returns [ErrDamaged] if it is damaged.
// Queries check the data that they return. Check finds damage before a query does.
func (r *reader) Check() error {
	for block := range blocks(r.dataEnd) {
		if r.mapping.checked.has(block) {
			continue
		}
		if err := r.checkBlock(block); err != nil {
			return err
		}
	}
	return nil
}

// CheckLists returns [ErrDamaged] unless [Index.Packages], [Index.Bundles] and [Index.Summaries]
// will return everything. It reads the data of these lists.
func (r *reader) CheckLists() error {
	if r.listsIntact.Load() {
		return nil
	}
	for _, f := range []reference{
		{sectionPackages, packageListed}, {sectionPackages, packageSummary}, {sectionEntries, entryMessage}, {sectionBundles, bundleShared},
	} {
		t := r.tables[f.from]
		for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
			if err := r.check(t.place(row, f.field)); err != nil {
				return err
			}
		}
	}
	t := r.tables[sectionBundles]
	for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
		if t.u32(row, bundleInline) == 0 {
			continue
		}
		if err := r.checkParts(t.rowsOf(row, bundlePayload)); err != nil {
			return err
		}
	}
	r.listsIntact.Store(true)
	return nil
}

func (r *reader) checkParts(parts rowRange) error {
	for i := range parts.count {
		if err := r.check(r.tables[sectionParts].place(parts.first+i, 0)); err != nil {
			return err
		}
	}
	return nil
}

// blocks returns the number of blocks of the data that ends at dataEnd.
func blocks(dataEnd uint64) uint64 { return (dataEnd - headerSize + blockSize - 1) / blockSize }
