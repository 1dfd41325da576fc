//go:build !unix

package index

import (
	"fmt"
	"io"
	"os"
)

// mapBytes reads the first bytes of a file where files cannot be mapped.
func mapBytes(file *os.File, size int) ([]byte, func([]byte), error) {
	bytes := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(file, 0, int64(size)), bytes); err != nil {
		return nil, nil, fmt.Errorf("reading %d bytes: %w", size, err)
	}
	return bytes, nil, nil
}

// willNeed does nothing for what is in memory.
func willNeed([]byte, uint64, uint64) {}

// hold never succeeds where files have no locks: nothing is taken for left over.
func hold(*os.File) bool { return false }
