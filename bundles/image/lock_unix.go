//go:build unix

package image

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockShared says that a directory is in use. The lock goes with the file. Whoever
// has locked the directory for himself alone does not take long.
func lockShared(dir *os.File) error {
	for {
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_SH); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// lockExclusive fails when a directory is in use.
func lockExclusive(dir *os.File) error { return unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
