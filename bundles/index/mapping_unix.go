//go:build unix

package index

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// mapBytes maps the first bytes of a file. It returns them, the file, which stays open, and a
// function that unmaps the bytes.
func mapBytes(file *os.File, size int) ([]byte, *File, func([]byte), error) {
	// The caller closes its own descriptor.
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("keeping the file open: %w", err)
	}
	backing := newFile(os.NewFile(uintptr(fd), file.Name()), int64(size))
	bytes, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("mapping %d bytes: %w", size, err), backing.handle.Close())
	}
	// Messages are read in random order. Read-ahead would waste memory. Failure of this advice has
	// no consequence.
	_ = unix.Madvise(bytes, unix.MADV_RANDOM)
	return bytes, backing, unmapBytes, nil
}

// copyBytes reads the first bytes of a file into memory outside the heap, which must not affect the
// garbage collection.
func copyBytes(file *os.File, size int) ([]byte, *File, func([]byte), error) {
	bytes, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("allocating %d bytes: %w", size, err)
	}
	if _, err = io.ReadFull(io.NewSectionReader(file, 0, int64(size)), bytes); err == nil {
		err = unix.Mprotect(bytes, unix.PROT_READ)
	}
	if err != nil {
		unmapBytes(bytes)
		return nil, nil, nil, fmt.Errorf("reading %d bytes: %w", size, err)
	}
	return bytes, nil, unmapBytes, nil
}

func unmapBytes(bytes []byte) {
	// The whole mapping is unmapped, so this cannot fail.
	_ = unix.Munmap(bytes)
}

// fileSize returns the size of an open file. It allocates nothing, because it is called for each large answer.
func fileSize(file *os.File) (int64, error) {
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err != nil {
		return 0, fmt.Errorf("reading the size of a file: %w", err)
	}
	return info.Size, nil
}

// willNeed advises the system that a part of a mapping will be read.
func willNeed(bytes []byte, from, to uint64) {
	page := uint64(os.Getpagesize()) //nolint:gosec // a page has a size
	from -= from % page
	_ = unix.Madvise(bytes[from:to], unix.MADV_WILLNEED) // only an advice
}

// hold takes a lock on a file, which lasts until the file is closed or the process ends. It returns
// false if another process has the lock.
func hold(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
