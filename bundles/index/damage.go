package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
)

// ErrDamaged is returned when the data of an index is not what was written. The
// way out is to build the index anew.
var ErrDamaged = errors.New("the index is damaged")

// bitmap is a set of block numbers that only grows.
type bitmap []atomic.Uint32

func newBitmap(bits int) bitmap { return make(bitmap, (bits+31)/32) }

func (b bitmap) has(bit uint64) bool { return b[bit/32].Load()&(1<<(bit%32)) != 0 }

func (b bitmap) add(bit uint64) { b[bit/32].Or(1 << (bit % 32)) }

// check makes sure that some data is intact. What was found intact once is not
// looked at again.
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

// Check reads all data that has not been looked at yet and makes sure that it
// is intact; it returns [ErrDamaged] if not. Queries do this for what they
// return; Check tells beforehand.
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

// blocks returns how many blocks the data has that ends there.
func blocks(dataEnd uint64) uint64 { return (dataEnd - headerSize + blockSize - 1) / blockSize }
