package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/chandlery/chandlery/test/process"
)

// Component is a program of the control plane.
type Component string

// The components, named as their binaries and log files are.
const (
	Etcd                  Component = "etcd"
	KubeAPIServer         Component = "kube-apiserver"
	KubeControllerManager Component = "kube-controller-manager"
	KubeScheduler         Component = "kube-scheduler"
	Kwok                  Component = "kwok"
)

// ComponentError says which component is in trouble and what it logged last.
type ComponentError struct {
	// Component is the one in trouble.
	Component Component
	// Log is the path of its log file.
	Log string
	// Tail is the end of that file.
	Tail string
	// Err is what happened to it.
	Err error
}

// Error names the component and shows the end of its log.
func (e *ComponentError) Error() string {
	return fmt.Sprintf("%s: %v; %s ends with:\n%s", e.Component, e.Err, e.Log, e.Tail)
}

// Unwrap returns what happened to the component.
func (e *ComponentError) Unwrap() error { return e.Err }

// command is what to run.
type command struct {
	component Component
	path      string
	args      []string
	env       []string
	dir       string
	log       string
}

// member is a component that was started.
type member struct {
	*process.Process

	component Component
}

// start runs the command. The process keeps running when ctx ends.
func (c command) start(ctx context.Context) (*member, error) {
	p, err := process.Start(ctx, process.Spec{
		Name: string(c.component), Path: c.path, Args: c.args, Dir: c.dir, Log: c.log,
		// Nothing of the caller's environment (proxies, a kubeconfig, settings of kwok in
		// the home folder) may change how a component behaves.
		Env: append([]string{"HOME=" + c.dir, "TMPDIR=" + c.dir, "PATH=" + os.Getenv("PATH")}, c.env...),
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the component.
	}

	return &member{Process: p, component: c.component}, nil
}

// ended says that the process has ended though it was not meant to, and how: a
// *ComponentError. It is nil while the process runs.
func (m *member) ended() error {
	err := m.Unexpected()
	if err == nil {
		return nil
	}

	how := errors.New("exit status 0")

	var exit *process.ExitError
	if errors.As(err, &exit) && exit.Err != nil {
		how = exit.Err
	}

	return m.failed(fmt.Errorf("ended by itself: %w", how))
}

// stop asks the process to end and makes it end when it does not within grace. How it
// exits when it was asked to is no matter, and neither is it that the API server had to be
// made to: it waits a minute for requests that are under way, and those of a node that
// has lost its power never end.
func (m *member) stop(grace time.Duration) error {
	err := m.Stop(grace)
	if errors.Is(err, process.ErrKilled) && m.component != KubeAPIServer {
		return m.failed(err)
	}

	return nil
}

// failed returns the error that says what happened to the process.
func (m *member) failed(err error) error {
	return &ComponentError{Component: m.component, Log: m.Log(), Tail: process.Tail(m.Log()), Err: err}
}
