// Package filelock makes processes on one machine take turns.
//
// A lock belongs to an open file and ends with it: when it is released, and also when
// the process that holds it dies in whatever way.
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

// poll is how often a waiting process asks for a lock again: the kernel has no way to
// wait for a file lock that a context can interrupt.
const poll = 200 * time.Millisecond

// ErrHeld is returned by Try when somebody else holds the lock.
var ErrHeld = errors.New("lock is held by another")

// Lock is an exclusive lock that is held.
type Lock struct {
	file *os.File
}

// Try takes the lock on the file called name, which it makes where it does not exist,
// folders included. The error wraps ErrHeld when somebody else holds it.
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

// Acquire takes the lock as Try does, and waits for it as long as somebody else holds
// it and ctx lasts. It calls waiting once when it begins to wait.
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

// File returns the open file. A process that inherits it holds the lock as well.
func (l *Lock) File() *os.File { return l.file }

// Release gives the lock back. The file stays where it is: removing it would let two
// processes hold locks on files of the same name.
func (l *Lock) Release() error {
	err := l.file.Close()
	if err != nil {
		return fmt.Errorf("release lock %s: %w", l.file.Name(), err)
	}

	return nil
}
