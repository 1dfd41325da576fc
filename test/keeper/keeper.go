// Package keeper runs something in the background for interactive use. `up` starts a process of the
// same program that remains running, and `down` stops it. A lock on a file shows whether the
// process is alive. A state file describes how to use what it runs.
package keeper

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
	// poll is the interval between checks of the keeper.
	poll = 100 * time.Millisecond
	// downLimit bounds the wait for the end of the keeper.
	downLimit = time.Minute
	// lockLimit bounds the attempts of a new keeper to take the lock.
	lockLimit = 2 * time.Second
	// watchInterval is the interval at which the keeper checks whether everything runs.
	watchInterval = time.Second
)

var (
	// ErrNotRunning means that there is no keeper.
	ErrNotRunning = errors.New("is not running")
	// ErrNotReady means that the keeper is still starting.
	ErrNotReady = errors.New("is starting: ask again in a few seconds")
	// errGone means that the keeper has ended.
	errGone = errors.New("stopped before it was ready")
)

// Keeper describes a background process, running or not.
type Keeper struct {
	// Dir is the folder of the keeper's files.
	Dir string
	// Name is the name of what the keeper runs, for messages.
	Name string
	// Start is the command that starts the keeper, for messages.
	Start string
	// Limit bounds the wait until the keeper is ready.
	Limit time.Duration
}

func (k Keeper) stateFile() string { return filepath.Join(k.Dir, "state.json") }
func (k Keeper) logFile() string   { return filepath.Join(k.Dir, "keeper.log") }

// DataDir returns the data folder. It is removed before a start and after the end.
func (k Keeper) DataDir() string { return filepath.Join(k.Dir, "data") }

// lockFile returns the file that the keeper locks while it is alive.
func (k Keeper) lockFile() string { return filepath.Join(k.Dir, "lock") }

// Kept reports whether a keeper is alive.
func (k Keeper) Kept() (bool, error) {
	held, err := filelock.Try(k.lockFile())
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
func (k Keeper) Ready(state any) error {
	kept, err := k.Kept()
	if err != nil {
		return err
	}

	if !kept {
		return fmt.Errorf("the %s %w: start it with `%s`", k.Name, ErrNotRunning, k.Start)
	}

	data, err := os.ReadFile(k.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the %s %w", k.Name, ErrNotReady)
	}

	if err != nil {
		return fmt.Errorf("read the state of the %s: %w", k.Name, err)
	}

	err = json.Unmarshal(data, state)
	if err != nil {
		return fmt.Errorf("read the state of the %s in %s: %w", k.Name, k.stateFile(), err)
	}

	return nil
}

// Up starts a keeper unless one runs, and waits for its state. If the keeper is not ready, it first
// calls prepare, whose output the user sees.
func (k Keeper) Up(ctx context.Context, state any, prepare func() error) error {
	err := k.Ready(state)
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
		err = k.spawn(ctx)
	}

	if err == nil {
		err = k.waitUntilReady(ctx, state)
	}

	if err != nil {
		return fmt.Errorf("start the %s: %w", k.Name, err)
	}

	return nil
}

// spawn starts the keeper: this program, in its own session.
func (k Keeper) spawn(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}

	err = os.MkdirAll(k.Dir, 0o755)
	if err != nil {
		return fmt.Errorf("make the folder of the %s: %w", k.Name, err)
	}

	log, err := os.Create(k.logFile())
	if err != nil {
		return fmt.Errorf("make the log of the %s: %w", k.Name, err)
	}

	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, Action)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	// The keeper has its own handle of the log.
	err = errors.Join(cmd.Start(), log.Close())
	if err != nil {
		return fmt.Errorf("start the keeper of the %s: %w", k.Name, err)
	}

	return k.waitUntilKept(ctx, cmd)
}

// waitUntilKept returns when the new process has taken the lock or has ended.
func (k Keeper) waitUntilKept(ctx context.Context, cmd *exec.Cmd) error {
	ended := make(chan struct{})

	go func() {
		defer close(ended)

		// The result is in its log.
		_ = cmd.Wait()
	}()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		kept, err := k.Kept()
		if err != nil || kept {
			return err
		}

		select {
		case <-ended:
			return k.gone()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (k Keeper) waitUntilReady(ctx context.Context, state any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, k.Limit, fmt.Errorf("not ready after %s: see %s", k.Limit, k.logFile()))
	defer cancel()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		err := k.Ready(state)
		if errors.Is(err, ErrNotRunning) {
			return k.gone()
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

// gone returns the error of a keeper that ended, with the end of its log.
func (k Keeper) gone() error {
	data, err := os.ReadFile(k.logFile())
	if err != nil {
		return errors.Join(errGone, err)
	}

	return fmt.Errorf("%w:\n%s", errGone, strings.TrimSpace(string(data)))
}

// Keep is the main function of the background process: it holds the lock while run runs.
func (k Keeper) Keep(ctx context.Context, run func(context.Context) error) error {
	// A check for a keeper holds the lock for a moment.
	locking, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()

	held, err := filelock.Acquire(locking, k.lockFile(), func() {})
	if err != nil {
		return fmt.Errorf("keep the %s: %w", k.Name, err)
	}

	err = errors.Join(k.clean(), run(ctx), k.clean())

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

// Announce writes the state atomically. Its JSON contains the process ID of the keeper as "pid".
func (k Keeper) Announce(state any) error {
	data, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("write the state of the %s: %w", k.Name, err)
	}

	temporary := k.stateFile() + ".new"

	err = os.WriteFile(temporary, data, 0o600)
	if err == nil {
		err = os.Rename(temporary, k.stateFile())
	}

	if err != nil {
		return fmt.Errorf("write the state of the %s: %w", k.Name, err)
	}

	return nil
}

// Down stops the keeper, waits until it has ended and prints a line.
func (k Keeper) Down(ctx context.Context, out io.Writer) error {
	kept, err := k.Kept()
	if err != nil {
		return err
	}

	if !kept {
		fmt.Fprintf(out, "no %s is running\n", k.Name)

		// A killed keeper may have left its data.
		return k.clean()
	}

	var state struct {
		PID int `json:"pid"`
	}

	err = k.waitUntilReady(ctx, &state)
	if errors.Is(err, errGone) {
		fmt.Fprintf(out, "the %s %v\n", k.Name, err)

		return k.clean()
	}

	if err != nil {
		return fmt.Errorf("find the %s to stop: %w", k.Name, err)
	}

	err = syscall.Kill(state.PID, syscall.SIGTERM)
	if err == nil {
		err = k.waitUntilGone(ctx)
	}

	if err != nil {
		return fmt.Errorf("stop the %s (process %d): %w", k.Name, state.PID, err)
	}

	fmt.Fprintf(out, "%s is down\n", k.Name)

	return nil
}

func (k Keeper) waitUntilGone(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, downLimit, fmt.Errorf("still running after %s: see %s", downLimit, k.logFile()))
	defer cancel()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		kept, err := k.Kept()
		if err != nil || !kept {
			return err
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// clean removes the files that are useless without a keeper.
func (k Keeper) clean() error {
	err := errors.Join(os.RemoveAll(k.stateFile()), os.RemoveAll(k.DataDir()))
	if err != nil {
		return fmt.Errorf("remove the data of the %s: %w", k.Name, err)
	}

	return nil
}
