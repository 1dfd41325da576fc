// Package daemon runs something in the background for interactive use. `up` starts a process of the
// same program that remains running, and `down` stops it. A lock on a file shows whether the
// process is alive. A state file describes how to use what it runs.
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/chandlery/chandlery/test/filelock"
)

const (
	// Action is the first argument of the background process.
	Action = "keep"
	// poll is the interval between checks of the daemon.
	poll = 100 * time.Millisecond
	// downLimit bounds the wait for the end of the daemon.
	downLimit = time.Minute
	// lockLimit bounds the attempts of a new daemon to take the lock.
	lockLimit = 2 * time.Second
	// watchInterval is the interval at which the daemon checks whether everything runs.
	watchInterval = time.Second
)

var (
	// ErrNotRunning means that there is no daemon.
	ErrNotRunning = errors.New("is not running")
	// ErrNotReady means that the daemon is still starting.
	ErrNotReady = errors.New("is starting: ask again in a few seconds")
	// errGone means that the daemon has ended.
	errGone = errors.New("stopped before it was ready")
)

// Daemon describes a background process, running or not.
type Daemon struct {
	// Dir is the folder of the daemon's files.
	Dir string
	// Name is the name of what the daemon runs, for messages.
	Name string
	// Start is the command that starts the daemon, for messages.
	Start string
	// Limit bounds the wait until the daemon is ready.
	Limit time.Duration
}

// The names of the files in the folder of a daemon. The daemon locks lockFile while it is alive.
const (
	stateFile = "state.json"
	logFile   = "daemon.log"
	lockFile  = "lock"
)

// file returns the path of a file of the daemon.
func (d Daemon) file(name string) string { return filepath.Join(d.Dir, name) }

// DataDir returns the data folder. It is removed before a start and after the end.
func (d Daemon) DataDir() string { return filepath.Join(d.Dir, "data") }

// Alive reports whether a daemon is alive.
func (d Daemon) Alive() (bool, error) {
	held, err := filelock.Try(d.file(lockFile))
	if errors.Is(err, filelock.ErrHeld) {
		return true, nil
	}

	if err != nil {
		return false, err
	}

	return false, held.Release()
}

// Ready reads the announced state into state. The error wraps ErrNotReady or ErrNotRunning if
// nothing was announced.
func (d Daemon) Ready(state any) error {
	alive, err := d.Alive()
	if err != nil {
		return err
	}

	if !alive {
		return fmt.Errorf("the %s %w: start it with `%s`", d.Name, ErrNotRunning, d.Start)
	}

	data, err := os.ReadFile(d.file(stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the %s %w", d.Name, ErrNotReady)
	}

	if err != nil {
		return fmt.Errorf("read the state of the %s: %w", d.Name, err)
	}

	err = json.Unmarshal(data, state)
	if err != nil {
		return fmt.Errorf("read the state of the %s in %s: %w", d.Name, d.file(stateFile), err)
	}

	return nil
}

// Up starts a daemon unless one runs, and waits for its state. If the daemon is not ready, it first
// calls prepare, whose output the user sees.
func (d Daemon) Up(ctx context.Context, state any, prepare func() error) error {
	err := d.Ready(state)
	if err == nil {
		return nil
	}

	running := errors.Is(err, ErrNotReady)
	if !running && !errors.Is(err, ErrNotRunning) {
		return err
	}

	err = prepare()
	if err != nil {
		return err
	}

	if !running {
		err = d.spawn(ctx)
	}

	if err == nil {
		err = d.waitUntilReady(ctx, state)
	}

	if err != nil {
		return fmt.Errorf("start the %s: %w", d.Name, err)
	}

	return nil
}

// spawn starts the daemon: this program, in its own session.
func (d Daemon) spawn(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}

	err = os.MkdirAll(d.Dir, 0o755)
	if err != nil {
		return fmt.Errorf("make the folder of the %s: %w", d.Name, err)
	}

	log, err := os.Create(d.file(logFile))
	if err != nil {
		return fmt.Errorf("make the log of the %s: %w", d.Name, err)
	}

	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, Action)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	// The daemon has its own handle of the log.
	err = errors.Join(cmd.Start(), log.Close())
	if err != nil {
		return fmt.Errorf("start the daemon of the %s: %w", d.Name, err)
	}

	return d.waitUntilAlive(ctx, cmd)
}

// waitUntilAlive returns when the new process has taken the lock or has ended.
func (d Daemon) waitUntilAlive(ctx context.Context, cmd *exec.Cmd) error {
	ended := make(chan struct{})

	go func() {
		defer close(ended)

		// The result is in its log.
		_ = cmd.Wait()
	}()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		alive, err := d.Alive()
		if err != nil || alive {
			return err
		}

		select {
		case <-ended:
			return d.gone()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (d Daemon) waitUntilReady(ctx context.Context, state any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.Limit, fmt.Errorf("not ready after %s: see %s", d.Limit, d.file(logFile)))
	defer cancel()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		err := d.Ready(state)
		if errors.Is(err, ErrNotRunning) {
			return d.gone()
		}

		if !errors.Is(err, ErrNotReady) {
			return err
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// gone returns the error of a daemon that ended, with the end of its log.
func (d Daemon) gone() error {
	data, err := os.ReadFile(d.file(logFile))
	if err != nil {
		return errors.Join(errGone, err)
	}

	return fmt.Errorf("%w:\n%s", errGone, strings.TrimSpace(string(data)))
}

// Keep is the main function of the background process: it holds the lock while run runs.
func (d Daemon) Keep(ctx context.Context, run func(context.Context) error) error {
	// A check for a daemon holds the lock for a moment.
	locking, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()

	held, err := filelock.Acquire(locking, d.file(lockFile), func() {})
	if err != nil {
		return fmt.Errorf("keep the %s: %w", d.Name, err)
	}

	err = errors.Join(d.clean(), run(ctx), d.clean())

	return errors.Join(err, held.Release())
}

// Watch returns when ctx ends, or with the first error of check.
func Watch(ctx context.Context, check func() error) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}

		err := check()
		if err != nil {
			return err
		}
	}
}

// Announce writes the state atomically. Its JSON contains the process ID of the daemon as "pid".
func (d Daemon) Announce(state any) error {
	data, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("write the state of the %s: %w", d.Name, err)
	}

	temporary := d.file(stateFile) + ".new"

	err = os.WriteFile(temporary, data, 0o600)
	if err == nil {
		err = os.Rename(temporary, d.file(stateFile))
	}

	if err != nil {
		return fmt.Errorf("write the state of the %s: %w", d.Name, err)
	}

	return nil
}

// Down stops the daemon, waits until it has ended and prints a line.
func (d Daemon) Down(ctx context.Context, out io.Writer) error {
	alive, err := d.Alive()
	if err != nil {
		return err
	}

	if !alive {
		fmt.Fprintf(out, "no %s is running\n", d.Name)

		// A killed daemon may have left its data.
		return d.clean()
	}

	var state struct {
		PID int `json:"pid"`
	}

	err = d.waitUntilReady(ctx, &state)
	if errors.Is(err, errGone) {
		fmt.Fprintf(out, "the %s %v\n", d.Name, err)

		return d.clean()
	}

	if err != nil {
		return fmt.Errorf("find the %s to stop: %w", d.Name, err)
	}

	err = syscall.Kill(state.PID, syscall.SIGTERM)
	if err == nil {
		err = d.waitUntilGone(ctx)
	}

	if err != nil {
		return fmt.Errorf("stop the %s (process %d): %w", d.Name, state.PID, err)
	}

	fmt.Fprintf(out, "%s is down\n", d.Name)

	return nil
}

func (d Daemon) waitUntilGone(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, downLimit, fmt.Errorf("still running after %s: see %s", downLimit, d.file(logFile)))
	defer cancel()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		alive, err := d.Alive()
		if err != nil || !alive {
			return err
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// clean removes the files that are useless without a daemon.
func (d Daemon) clean() error {
	err := errors.Join(os.RemoveAll(d.file(stateFile)), os.RemoveAll(d.DataDir()))
	if err != nil {
		return fmt.Errorf("remove the data of the %s: %w", d.Name, err)
	}

	return nil
}
