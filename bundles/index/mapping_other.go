//go:build !unix

package index

import (
	"fmt"
	"io"
	"os"
)

// mapBytes reads the first bytes of a file, because files cannot be mapped on this platform.
func mapBytes(file *os.File, size int) ([]byte, *File, func([]byte), error) {
	return copyBytes(file, size)
}

// copyBytes reads the first bytes of a file.
func copyBytes(file *os.File, size int) ([]byte, *File, func([]byte), error) {
	bytes := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(file, 0, int64(size)), bytes); err != nil {
		return nil, nil, nil, fmt.Errorf("reading %d bytes: %w", size, err)
	}
	return bytes, nil, nil, nil
}

// fileSize returns the size of an open file.
func fileSize(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("reading the size of a file: %w", err)
	}
	return info.Size(), nil
}

// willNeed does nothing, because the bytes are in memory.
func willNeed([]byte, uint64, uint64) {}

// hold always returns false, because files have no locks on this platform. So no file counts as a leftover.
func hold(*os.File) bool { return false }
