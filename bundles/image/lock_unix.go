//go:build unix

package image

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockShared marks a directory as in use. The lock ends with the file. An exclusive lock of another
// process is short.
func lockShared(dir *os.File) error {
	for {
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_SH); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// lockExclusive returns an error if a directory is in use.
func lockExclusive(dir *os.File) error { return unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
