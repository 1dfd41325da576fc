//go:build unix

package image

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockShared says that a directory is in use. The lock goes with the file.
func lockShared(dir *os.File) error { return unix.Flock(int(dir.Fd()), unix.LOCK_SH|unix.LOCK_NB) }

// lockExclusive fails when a directory is in use.
func lockExclusive(dir *os.File) error { return unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
