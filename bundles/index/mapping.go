package index

import (
	"fmt"
	"os"
	"runtime"
)

// mapping is the bytes of an index, in memory or mapped from a file.
//
// A mapping ends when nothing refers to it: neither an [Index] nor a [Message] nor, through the
// buffers of messages, an answer to a client. The garbage collector determines this more reliably
// than a reference count. gRPC drops answers in many ways when connections break.
type mapping struct {
	bytes []byte
	// file is the mapped file; nil for bytes in memory.
	file *File
	// checked has a bit for each block of the data that was found intact.
	checked bitmap
}

func newMapping(bytes []byte) *mapping { return &mapping{bytes: bytes} }

// copiedFileBytes is the size up to which a file is copied into memory instead of mapped. Later
// changes of such a file have no effect.
const copiedFileBytes = 4 << 20

// mapFile maps a file that will not change, or copies it if it has at most copied bytes. The caller
// may close the file afterwards.
func mapFile(file *os.File, copied int64) (*mapping, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("mapping index: %w", err)
	}
	size := info.Size()
	switch {
	case !info.Mode().IsRegular():
		return nil, unusable("it is not a regular file")
	case size < headerSize:
		return nil, unusable("it has %d bytes, fewer than a header", size)
	case size > maxFileBytes:
		return nil, unusable("it has %d bytes, more than %d", size, int64(maxFileBytes))
	}
	read := mapBytes
	if size <= copied {
		read = copyBytes
	}
	bytes, backing, unmap, err := read(file, int(size))
	if err != nil {
		return nil, fmt.Errorf("mapping index: %w", err)
	}
	m := newMapping(bytes)
	m.file = backing
	if unmap != nil {
		runtime.AddCleanup(m, unmap, bytes)
	}
	return m, nil
}
