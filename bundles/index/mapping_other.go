//go:build !unix

package index

import (
	"fmt"
	"io"
	"os"
)

// mapBytes reads the first bytes of a file where files cannot be mapped.
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

// willNeed does nothing for what is in memory.
func willNeed([]byte, uint64, uint64) {}

// hold never succeeds where files have no locks: nothing is taken for left over.
func hold(*os.File) bool { return false }
