package main

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

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/filelock"
)

const (
	// keepAction is the argument of the process that up leaves behind.
	keepAction = "keep"
	// poll is how often up and down look at the keeper.
	poll = 100 * time.Millisecond
	// upLimit and downLimit bound the wait for the keeper to be ready and to be gone.
	upLimit   = 3 * time.Minute
	downLimit = time.Minute
	// lockLimit is how long a new keeper tries to be the only one.
	lockLimit = 2 * time.Second
	// watchInterval is how often the keeper looks whether every component still runs.
	watchInterval = time.Second
)

var (
	// errGone says that the process that was to keep the control plane has ended.
	errGone = errors.New("the control plane stopped before it was ready")
	// errNotRunning says that there is no control plane.
	errNotRunning = errors.New("no cluster is running: start one with `make cluster-up`")
	// errNotReady says that the control plane is still starting.
	errNotReady = errors.New("the cluster is starting: ask again in a few seconds")
)

// cluster is the one control plane of this user, running or not.
type cluster struct {
	dir string
}

// state is what the keeper writes when the control plane is ready.
type state struct {
	PID        int       `json:"pid"`
	Kubeconfig string    `json:"kubeconfig"`
	Kubectl    string    `json:"kubectl"`
	Logs       string    `json:"logs"`
	Nodes      []string  `json:"nodes"`
	Since      time.Time `json:"since"`
}

func newCluster() (cluster, error) {
	root, err := buildcache.Root()
	if err != nil {
		return cluster{}, err
	}

	return cluster{dir: filepath.Join(root, "cluster")}, nil
}

func (c cluster) stateFile() string { return filepath.Join(c.dir, "state.json") }
func (c cluster) logFile() string   { return filepath.Join(c.dir, "keeper.log") }
func (c cluster) dataDir() string   { return filepath.Join(c.dir, "data") }

// lockFile is locked by the keeper as long as it lives.
func (c cluster) lockFile() string { return filepath.Join(c.dir, "lock") }

// kept tells whether a keeper lives.
func (c cluster) kept() (bool, error) {
	held, err := filelock.Try(c.lockFile())
	if errors.Is(err, filelock.ErrHeld) {
		return true, nil
	}

	if err != nil {
		return false, err
	}

	return false, held.Release()
}

// ready returns the state of the control plane, or errNotReady and errNotRunning where
// it cannot be used.
func (c cluster) ready() (state, error) {
	kept, err := c.kept()
	if err != nil {
		return state{}, err
	}

	if !kept {
		return state{}, errNotRunning
	}

	data, err := os.ReadFile(c.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, errNotReady
	}

	if err != nil {
		return state{}, fmt.Errorf("read the state of the cluster: %w", err)
	}

	var s state

	err = json.Unmarshal(data, &s)
	if err != nil {
		return state{}, fmt.Errorf("read the state of the cluster in %s: %w", c.stateFile(), err)
	}

	return s, nil
}

// up makes sure that a control plane runs and says how to use it.
func (c cluster) up(ctx context.Context, out io.Writer) error {
	s, err := c.ready()
	if err == nil {
		return s.print(out)
	}

	running := errors.Is(err, errNotReady)
	if !running && !errors.Is(err, errNotRunning) {
		return err
	}

	_, err = controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}

	if !running {
		err = c.spawn(ctx)
	}

	if err != nil {
		return err
	}

	s, err = c.waitUntilReady(ctx)
	if err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}

	return s.print(out)
}

// spawn starts the keeper: this program, in a session of its own.
func (c cluster) spawn(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}

	err = os.MkdirAll(c.dir, 0o755)
	if err != nil {
		return fmt.Errorf("make the folder of the cluster: %w", err)
	}

	log, err := os.Create(c.logFile())
	if err != nil {
		return fmt.Errorf("make the log of the cluster: %w", err)
	}

	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, keepAction)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	// The keeper has the log open by itself once it runs.
	err = errors.Join(cmd.Start(), log.Close())
	if err != nil {
		return fmt.Errorf("start the keeper of the cluster: %w", err)
	}

	return c.waitUntilKept(ctx, cmd)
}

// waitUntilKept returns when the new process has taken the lock, or ended.
func (c cluster) waitUntilKept(ctx context.Context, cmd *exec.Cmd) error {
	ended := make(chan struct{})

	go func() {
		defer close(ended)

		// How it ended is in its log.
		_ = cmd.Wait()
	}()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		kept, err := c.kept()
		if err != nil || kept {
			return err
		}

		select {
		case <-ended:
			return c.gone()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (c cluster) waitUntilReady(ctx context.Context) (state, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, upLimit, fmt.Errorf("not ready after %s: see %s", upLimit, c.logFile()))
	defer cancel()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		s, err := c.ready()
		if errors.Is(err, errNotRunning) {
			return state{}, c.gone()
		}

		if !errors.Is(err, errNotReady) {
			return s, err
		}

		select {
		case <-ctx.Done():
			return state{}, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// gone returns the error for a keeper that ended, with what it said.
func (c cluster) gone() error {
	data, err := os.ReadFile(c.logFile())
	if err != nil {
		return errors.Join(errGone, err)
	}

	return fmt.Errorf("%w:\n%s", errGone, strings.TrimSpace(string(data)))
}

// keep runs the control plane until ctx ends. It is what up leaves running.
func (c cluster) keep(ctx context.Context) error {
	// Whoever looks whether a keeper lives holds the lock for a moment.
	locking, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()

	held, err := filelock.Acquire(locking, c.lockFile(), func() {})
	if err != nil {
		return fmt.Errorf("keep the cluster: %w", err)
	}

	err = errors.Join(c.clean(), c.serve(ctx))

	return errors.Join(err, held.Release())
}

func (c cluster) serve(ctx context.Context) error {
	plane, err := controlplane.Start(ctx, controlplane.Options{Dir: c.dataDir()})
	if err != nil {
		return err
	}

	err = c.announce(plane)
	if err == nil {
		err = watch(ctx, plane)
	}

	return errors.Join(err, plane.Stop(), c.clean())
}

// watch returns when ctx ends, or with an error when a component did.
func watch(ctx context.Context, plane *controlplane.ControlPlane) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}

		err := plane.Err()
		if err != nil {
			return err
		}
	}
}

// announce writes the state, whole or not at all.
func (c cluster) announce(plane *controlplane.ControlPlane) error {
	data, err := json.Marshal(state{
		PID: os.Getpid(), Kubeconfig: plane.Kubeconfig(), Kubectl: plane.Kubectl(),
		Logs: plane.LogDir(), Nodes: plane.Nodes(), Since: time.Now(),
	})
	if err != nil {
		return fmt.Errorf("write the state of the cluster: %w", err)
	}

	temporary := c.stateFile() + ".new"

	err = os.WriteFile(temporary, data, 0o600)
	if err == nil {
		err = os.Rename(temporary, c.stateFile())
	}

	if err != nil {
		return fmt.Errorf("write the state of the cluster: %w", err)
	}

	return nil
}

// clean removes what an earlier control plane left.
func (c cluster) clean() error {
	err := errors.Join(os.RemoveAll(c.stateFile()), os.RemoveAll(c.dataDir()))
	if err != nil {
		return fmt.Errorf("remove the data of the cluster: %w", err)
	}

	return nil
}
