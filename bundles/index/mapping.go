package index

import (
	"fmt"
	"os"
	"runtime"
)

// mapping is the bytes of an index, in memory or mapped from a file.
//
// A mapping ends when nothing refers to it any more: neither an [Index] nor a
// [Message] nor, through the buffers made of messages, an answer on its way to
// a client. The garbage collector knows that better than any count could, as
// answers are dropped in many ways when connections break.
type mapping struct {
	bytes []byte
	// file tells that the bytes are those of a file.
	file bool
	// checked has a bit for each block of the data that has been found intact.
	checked bitmap
}

func newMapping(bytes []byte) *mapping { return &mapping{bytes: bytes} }

// mapFile maps a file that is not going to change. The file may be closed
// afterwards.
func mapFile(file *os.File) (*mapping, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("mapping index: %w", err)
	}
	switch size := info.Size(); {
	case !info.Mode().IsRegular():
		return nil, unusable("it is not a regular file")
	case size < headerSize:
		return nil, unusable("it has %d bytes, fewer than a header", size)
	case size > maxFileBytes:
		return nil, unusable("it has %d bytes, more than %d", size, int64(maxFileBytes))
	}
	bytes, unmap, err := mapBytes(file, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("mapping index: %w", err)
	}
	m := newMapping(bytes)
	if unmap != nil {
		m.file = true
		runtime.AddCleanup(m, unmap, bytes)
	}
	return m, nil
}
