//go:build unix

package index

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapBytes maps the first bytes of a file and returns what undoes it.
func mapBytes(file *os.File, size int) ([]byte, func([]byte), error) {
	bytes, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("mapping %d bytes: %w", size, err)
	}
	return bytes, func(bytes []byte) {
		// It was mapped as a whole, so this cannot fail.
		_ = unix.Munmap(bytes)
	}, nil
}
