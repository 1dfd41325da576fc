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
func (x *Index) check(p place) error {
	if p.length == 0 {
		return nil
	}
	last := (p.end() - headerSize - 1) / blockSize
	for block := (p.offset - headerSize) / blockSize; block <= last; block++ {
		if x.mapping.checked.has(block) {
			continue
		}
		if err := x.checkBlock(block); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) checkBlock(block uint64) error {
	from := headerSize + block*blockSize
	to := min(from+blockSize, x.dataEnd)
	if x.mapping.file != nil {
		willNeed(x.mapping.bytes, from, to)
	}
	err := x.mapping.guarded(func() error {
		want := binary.LittleEndian.Uint32(x.tables[sectionBlocks].rows[4*block:])
		if crc32.Checksum(x.mapping.bytes[from:to], castagnoli) != want {
			return fmt.Errorf("%w: bytes %d to %d differ from what was written", ErrDamaged, from, to)
		}
		return nil
	})
	if err == nil {
		x.mapping.checked.add(block)
	}
	return err
}

// Check checks all data that has not been checked yet and returns [ErrDamaged] if it is damaged.
// Queries check the data that they return. Check finds damage before a query does.
func (x *Index) Check() error {
	for block := range blocks(x.dataEnd) {
		if x.mapping.checked.has(block) {
			continue
		}
		if err := x.checkBlock(block); err != nil {
			return err
		}
	}
	return nil
}

// blocks returns the number of blocks of the data that ends at dataEnd.
func blocks(dataEnd uint64) uint64 { return (dataEnd - headerSize + blockSize - 1) / blockSize }
