// Package filelock provides exclusive locks between processes on one machine.
//
// A lock belongs to an open file and ends with it: when it is released, and when the process that
// holds it ends for any reason.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// poll is the interval at which a waiting process tries to take a lock. The kernel has no wait for
// file locks that a context can interrupt.
const poll = 200 * time.Millisecond

// ErrHeld is returned by Try if another process holds the lock.
var ErrHeld = errors.New("lock is held by another")

// Lock is an exclusive lock that is held.
type Lock struct {
	file *os.File
}

// Try takes the lock on a file. It creates the file and its folders if they do not exist. The error
// wraps ErrHeld if another process holds the lock.
func Try(name string) (*Lock, error) {
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err != nil {
		return nil, fmt.Errorf("make the folder of lock file %s: %w", name, err)
	}

	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}

	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrHeld
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), file.Close())
	}

	return &Lock{file: file}, nil
}

// Acquire takes the lock as Try does. It waits while another process holds it, until ctx ends. It
// calls waiting once when it begins to wait.
func Acquire(ctx context.Context, name string, waiting func()) (*Lock, error) {
	held, err := Try(name)
	if !errors.Is(err, ErrHeld) {
		return held, err
	}

	waiting()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", name, context.Cause(ctx))
		case <-ticker.C:
		}

		held, err = Try(name)
		if !errors.Is(err, ErrHeld) {
			return held, err
		}
	}
}

// File returns the open file. A process that inherits it also holds the lock.
func (l *Lock) File() *os.File { return l.file }

// Release releases the lock. It does not delete the file, because two processes could then hold
// locks on files of the same name.
func (l *Lock) Release() error {
	err := l.file.Close()
	if err != nil {
		return fmt.Errorf("release lock %s: %w", l.file.Name(), err)
	}

	return nil
}
