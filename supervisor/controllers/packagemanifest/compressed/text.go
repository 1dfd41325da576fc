// Package compressed stores texts in the form in which HTTP sends them. A server joins them to a body with the content
// coding gzip, and neither compresses nor decompresses them again.
package compressed

import (
	"bytes"
	"compress/flate"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"sync"
)

// Text is a compressed text: blocks of DEFLATE (RFC 1951) that end at a byte, and none of which is the last one. Texts
// can therefore be joined.
type Text struct {
	blocks []byte
	// size and sum are the length and the CRC-32 of the text itself.
	size int
	sum  uint32
	// memory is where the blocks are; nil for the heap.
	memory *memory
}

// Compressor compresses texts. It is for one goroutine.
type Compressor struct{ writer *flate.Writer }

// NewCompressor returns a Compressor.
func NewCompressor() (*Compressor, error) {
	writer, err := flate.NewWriter(io.Discard, flate.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("preparing to compress: %w", err)
	}
	return &Compressor{writer: writer}, nil
}

// Compress returns a text in compressed form.
func (c *Compressor) Compress(text []byte) (Text, error) {
	var out bytes.Buffer
	c.writer.Reset(&out)
	if _, err := c.writer.Write(text); err != nil {
		return Text{}, fmt.Errorf("compressing: %w", err)
	}
	if err := c.writer.Flush(); err != nil {
		return Text{}, fmt.Errorf("compressing: %w", err)
	}
	return Text{blocks: bytes.Clone(out.Bytes()), size: len(text), sum: crc32.ChecksumIEEE(text)}, nil
}

// readers are decompressors. Each has a buffer of 32 KiB.
var readers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// Size returns the length of the text.
func (t Text) Size() int { return t.size }

// Bytes returns the text.
func (t Text) Bytes() ([]byte, error) {
	// A buffer grows unless there is room for another read.
	out := bytes.NewBuffer(make([]byte, 0, t.size+bytes.MinRead))
	if err := t.write(out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// write writes the text piece by piece.
func (t Text) write(out io.Writer) error {
	reader := readers.Get().(io.ReadCloser) //nolint:forcetypeassert,errcheck // the pool has no others
	defer readers.Put(reader)
	defer runtime.KeepAlive(t.memory)
	if err := reader.(flate.Resetter).Reset(bytes.NewReader(t.blocks), nil); err != nil { //nolint:forcetypeassert,errcheck // documented
		return fmt.Errorf("decompressing: %w", err)
	}
	if _, err := io.CopyN(out, reader, int64(t.size)); err != nil {
		return fmt.Errorf("decompressing: %w", err)
	}
	return nil
}
