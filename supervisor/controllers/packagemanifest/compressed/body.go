package compressed

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"runtime"
)

// Body writes a body of texts. After an error, it writes nothing more.
type Body struct {
	out  io.Writer
	gzip bool
	// size and sum are those of everything that was written.
	size int
	sum  uint32
	err  error
}

// header begins a stream (RFC 1952): the magic number, DEFLATE, no flags, no time, and an unknown system.
var header = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// maxStored is the maximum size of a block that is not compressed.
const maxStored = 65535

// NewBody returns a body with the content coding gzip, or without one.
func NewBody(out io.Writer, gzip bool) *Body {
	b := &Body{out: out, gzip: gzip}
	if gzip {
		b.send(header)
	}
	return b
}

// Plain adds a short text that is not compressed.
func (b *Body) Plain(text []byte) {
	if !b.gzip {
		b.send(text)
		return
	}
	b.sum, b.size = combine(b.sum, crc32.ChecksumIEEE(text), len(text)), b.size+len(text)
	for len(text) > 0 {
		n := min(len(text), maxStored)
		b.stored(text[:n], false)
		text = text[n:]
	}
}

// Text adds a compressed text.
func (b *Body) Text(t Text) {
	if b.gzip {
		b.sum, b.size = combine(b.sum, t.sum, t.size), b.size+t.size
		b.send(t.blocks)
		runtime.KeepAlive(t.memory)
		return
	}
	if b.err == nil {
		b.err = t.write(b.out)
	}
}

// End ends the body and returns the first error.
func (b *Body) End() error {
	if b.gzip {
		b.stored(nil, true)
		b.send(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, b.sum), uint32(b.size))) //nolint:gosec // modulo 2^32, as RFC 1952 has it
	}
	return b.err
}

// stored writes a block that is not compressed.
func (b *Body) stored(text []byte, last bool) {
	var head [5]byte
	if last {
		head[0] = 1
	}
	size := uint16(len(text)) //nolint:gosec // at most maxStored
	binary.LittleEndian.PutUint16(head[1:], size)
	binary.LittleEndian.PutUint16(head[3:], ^size)
	b.send(head[:])
	b.send(text)
}

func (b *Body) send(data []byte) {
	if b.err == nil {
		_, b.err = b.out.Write(data)
	}
}
