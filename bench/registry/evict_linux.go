package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// evictFile drops a file from the page cache.
func evictFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED), file.Close())
}
