package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Spec describes a process.
type Spec struct {
	// Name is the name of the process in messages.
	Name string
	// Path is the path of the program. Args are its arguments, without the program itself.
	Path string
	Args []string
	// Dir is the folder that it runs in; empty for the caller's.
	Dir string
	// Env is its environment; nil for the caller's.
	Env []string
	// Log is the file that its output is appended to.
	Log string
}

// ErrKilled means that a process did not stop in time and was killed.
var ErrKilled = errors.New("did not stop in time and was killed")

// ExitError means that a process ended unexpectedly.
type ExitError struct {
	// Name is the name of the process, Log is its log file and Tail is the end of the log.
	Name, Log, Tail string
	// Err is the result of the process. nil stands for exit status 0.
	Err error
}

// Error returns the name of the process and the end of its log.
func (e *ExitError) Error() string {
	how := "exit status 0"
	if e.Err != nil {
		how = e.Err.Error()
	}
	return fmt.Sprintf("%s ended unexpectedly (%s); the end of %s:\n%s", e.Name, how, e.Log, e.Tail)
}

// Unwrap returns the result of the process.
func (e *ExitError) Unwrap() error { return e.Err }

// Process is a program that was started.
type Process struct {
	spec    Spec
	running *os.Process
	done    chan struct{}
	exit    error // the result; read after done is closed
}

// Start runs the program. It keeps running after ctx ends, until Stop or Kill.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), spec.Path, spec.Args...)
	cmd.Dir, cmd.Env = spec.Dir, spec.Env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()

	p := &Process{spec: spec, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// A process that dies with its parent dies with the thread that has started it, so the
		// thread must live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.running = cmd.Process
		started <- err
		if err == nil {
			p.exit = cmd.Wait()
			close(p.done)
		}
	}()
	if err := errors.Join(<-started, log.Close()); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return p, nil
}

// Name returns the name of the process in messages.
func (p *Process) Name() string { return p.spec.Name }

// Log returns the path of its log file.
func (p *Process) Log() string { return p.spec.Log }

// PID returns its process ID.
func (p *Process) PID() int { return p.running.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Unexpected returns an *ExitError if the process has ended unexpectedly. It returns nil while the process runs.
func (p *Process) Unexpected() error {
	select {
	case <-p.done:
		return &ExitError{Name: p.spec.Name, Log: p.spec.Log, Tail: Tail(p.spec.Log), Err: p.exit}
	default:
		return nil
	}
}

// Stop sends SIGTERM to the process and kills it after grace, which is an ErrKilled. An exit status
// other than 0 is an error, too. Stopping a process that has already ended is none.
func (p *Process) Stop(grace time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s %w (%s); see %s", p.spec.Name, ErrKilled, grace, p.spec.Log), p.Kill())
	}
	if p.exit != nil {
		return fmt.Errorf("stopping %s: %w; the end of %s:\n%s", p.spec.Name, p.exit, p.spec.Log, Tail(p.spec.Log))
	}
	return nil
}

// Kill kills the process (SIGKILL) and waits until it has ended.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Freeze halts the process (SIGSTOP) until Thaw.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw resumes a frozen process (SIGCONT).
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s os.Signal) error {
	if err := p.running.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", s, p.spec.Name, err)
	}
	return nil
}

// Result waits for the end of a process that ends on its own. It returns nil for exit status 0,
// else an *ExitError.
func (p *Process) Result() error {
	<-p.done
	if p.exit == nil {
		return nil
	}
	return p.Unexpected()
}
