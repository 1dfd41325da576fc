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

// The components, with the names of their binaries and log files.
const (
	Etcd                  Component = "etcd"
	KubeAPIServer         Component = "kube-apiserver"
	KubeControllerManager Component = "kube-controller-manager"
	KubeScheduler         Component = "kube-scheduler"
	Kwok                  Component = "kwok"
)

// ComponentError is the error of a component, with the end of its log.
type ComponentError struct {
	// Component is the failed component.
	Component Component
	// Log is the path of its log file.
	Log string
	// Tail is the end of that file.
	Tail string
	// Err is the cause.
	Err error
}

// Error returns the name of the component and the end of its log.
func (e *ComponentError) Error() string {
	return fmt.Sprintf("%s: %v; %s ends with:\n%s", e.Component, e.Err, e.Log, e.Tail)
}

// Unwrap returns the cause.
func (e *ComponentError) Unwrap() error { return e.Err }

// command is the command of a component.
type command struct {
	component Component
	path      string
	args      []string
	env       []string
	dir       string
	log       string
}

// member is a started component.
type member struct {
	*process.Process

	component Component
}

// start runs the command. The process keeps running after ctx ends.
func (c command) start(ctx context.Context) (*member, error) {
	p, err := process.Start(ctx, process.Spec{
		Name: string(c.component), Path: c.path, Args: c.args, Dir: c.dir, Log: c.log,
		// Nothing in the caller's environment may affect a component, such as proxies, a kubeconfig
		// or settings of kwok in the home folder.
		Env: append([]string{"HOME=" + c.dir, "TMPDIR=" + c.dir, "PATH=" + os.Getenv("PATH")}, c.env...),
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the component.
	}

	return &member{Process: p, component: c.component}, nil
}

// ended returns a *ComponentError if the process has ended unexpectedly. It returns nil while the process runs.
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

// stop stops the process and kills it after grace. The exit status of a stopped process does not
// matter. The API server may have to be killed: it waits a minute for requests in progress, and
// those of a node without power never end.
func (m *member) stop(grace time.Duration) error {
	err := m.Stop(grace)
	if errors.Is(err, process.ErrKilled) && m.component != KubeAPIServer {
		return m.failed(err)
	}

	return nil
}

// failed returns the error of the process.
func (m *member) failed(err error) error {
	return &ComponentError{Component: m.component, Log: m.Log(), Tail: process.Tail(m.Log()), Err: err}
}
