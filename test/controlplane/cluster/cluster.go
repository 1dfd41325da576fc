package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/daemon"
)

// upLimit bounds the start of the control plane.
const upLimit = 3 * time.Minute

// cluster is the user's only control plane, running or not.
type cluster struct {
	daemon.Daemon
}

// state is what the daemon process announces when the control plane is ready.
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

	return cluster{daemon.Daemon{
		Dir: filepath.Join(root, "cluster"), Name: "cluster", Start: "make cluster-up", Limit: upLimit,
	}}, nil
}

// up starts a control plane unless one runs, and prints how to use it.
func (c cluster) up(ctx context.Context, out io.Writer) error {
	var s state

	err := c.Up(ctx, &s, func() error {
		_, err := controlplane.Build(ctx, os.Stderr)

		return err
	})
	if err != nil {
		return err
	}

	return s.print(out)
}

// keep runs the control plane until ctx ends. up leaves it running.
func (c cluster) keep(ctx context.Context) error {
	return c.Keep(ctx, func(ctx context.Context) error {
		plane, err := controlplane.Start(ctx, controlplane.Options{Dir: c.DataDir()})
		if err != nil {
			return err
		}

		err = c.Announce(state{
			PID: os.Getpid(), Kubeconfig: plane.Kubeconfig(), Kubectl: plane.Kubectl(),
			Logs: plane.LogDir(), Nodes: plane.Nodes(), Since: time.Now(),
		})
		if err == nil {
			err = daemon.Watch(ctx, plane.Err)
		}

		return errors.Join(err, plane.Stop())
	})
}

// status prints how to use the running control plane.
func (c cluster) status(out io.Writer) error {
	var s state

	err := c.Ready(&s)
	if err != nil {
		return err
	}

	return s.print(out)
}

// print prints how to use the control plane.
func (s state) print(out io.Writer) error {
	_, err := fmt.Fprintf(out, `cluster is up since %s: %s
kubeconfig: %s
kubectl:    %s
logs:       %s

export KUBECONFIG=%s
`, s.Since.Format(time.DateTime), strings.Join(s.Nodes, ", "), s.Kubeconfig, s.Kubectl, s.Logs, s.Kubeconfig)
	if err != nil {
		return fmt.Errorf("print the state of the cluster: %w", err)
	}

	return nil
}
