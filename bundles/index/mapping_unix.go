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
	// Replies lie anywhere, and what the system reads ahead it has to drop again
	// where memory is short. Without the advice everything works as well.
	_ = unix.Madvise(bytes, unix.MADV_RANDOM)
	return bytes, func(bytes []byte) {
		// It was mapped as a whole, so this cannot fail.
		_ = unix.Munmap(bytes)
	}, nil
}

// willNeed tells the system that a part of a mapping is going to be read.
func willNeed(bytes []byte, from, to uint64) {
	page := uint64(os.Getpagesize()) //nolint:gosec // a page has a size
	from -= from % page
	_ = unix.Madvise(bytes[from:to], unix.MADV_WILLNEED) // an advice
}

// hold takes a lock on a file, which lasts until it is closed, however the
// process ends; false when another holds it.
func hold(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
