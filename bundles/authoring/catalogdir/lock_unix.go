//go:build unix

package catalogdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// retryLock is the time between two attempts to take a lock.
const retryLock = 20 * time.Millisecond

// lock waits until no other process has the lock of a directory. The lock ends with the file.
func lock(ctx context.Context, dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the catalog: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking the catalog %s: %w", dir, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for another process that changes the catalog %s: %w", dir, context.Cause(ctx)), file.Close())
		case <-time.After(retryLock):
		}
	}
}
