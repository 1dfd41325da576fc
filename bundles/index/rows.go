package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// spillBytes is the size of the part of a table that stays in memory during writing.
const spillBytes = 256 << 10

// rowBuffer collects the rows of a table. Rows beyond a small size go to a temporary file, so a
// large catalog needs little memory.
type rowBuffer struct {
	width int
	// spill creates the temporary file; nil keeps everything in memory.
	spill func() (*os.File, error)

	pending []byte
	file    *os.File
	spilled int64
	err     error
}

// count returns the number of rows.
func (b *rowBuffer) count() int { return int((b.spilled + int64(len(b.pending))) / int64(b.width)) }

// size returns the number of bytes.
func (b *rowBuffer) size() int64 { return b.spilled + int64(len(b.pending)) }

func (b *rowBuffer) u32(n uint32) {
	b.pending = binary.LittleEndian.AppendUint32(b.pending, n)
	b.relieve()
}

func (b *rowBuffer) u64(n uint64) {
	b.pending = binary.LittleEndian.AppendUint64(b.pending, n)
	b.relieve()
}

// relieve moves rows to the file when there are many. writeTo returns its error.
func (b *rowBuffer) relieve() {
	if len(b.pending) < spillBytes || b.spill == nil || b.err != nil {
		return
	}
	if b.file == nil {
		if b.file, b.err = b.spill(); b.err != nil {
			return
		}
	}
	var n int
	n, b.err = b.file.Write(b.pending)
	b.spilled += int64(n)
	b.pending = b.pending[n:]
	if len(b.pending) == 0 {
		b.pending = make([]byte, 0, spillBytes+8)
	}
}

// writeTo writes all rows, in their order.
func (b *rowBuffer) writeTo(out io.Writer) error {
	if b.err != nil {
		return fmt.Errorf("writing a table: %w", b.err)
	}
	if b.file != nil {
		if _, err := io.CopyBuffer(out, struct{ io.Reader }{io.NewSectionReader(b.file, 0, b.spilled)}, make([]byte, 64<<10)); err != nil {
			return fmt.Errorf("writing a table: %w", err)
		}
	}
	if _, err := out.Write(b.pending); err != nil {
		return fmt.Errorf("writing a table: %w", err)
	}
	return nil
}

// close closes the temporary file.
func (b *rowBuffer) close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// spillTo returns a function that creates unnamed temporary files in a directory.
func spillTo(dir string) func() (*os.File, error) {
	return func() (*os.File, error) {
		file, err := os.CreateTemp(dir, ".chandlery-table-*")
		if err != nil {
			return nil, fmt.Errorf("making a temporary file: %w", err)
		}
		if err := os.Remove(file.Name()); err != nil {
			return nil, errors.Join(fmt.Errorf("making a temporary file: %w", err), file.Close())
		}
		return file, nil
	}
}
