package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"
)

// print says how to use the control plane.
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

// status says how to use the control plane that runs.
func (c cluster) status(out io.Writer) error {
	s, err := c.ready()
	if err != nil {
		return err
	}

	return s.print(out)
}

// down stops the control plane and waits until it has.
func (c cluster) down(ctx context.Context, out io.Writer) error {
	kept, err := c.kept()
	if err != nil {
		return err
	}

	if !kept {
		fmt.Fprintln(out, "no cluster is running")

		// One that was killed may have left its data.
		return c.clean()
	}

	s, err := c.waitUntilReady(ctx)
	if errors.Is(err, errGone) {
		fmt.Fprintln(out, "the cluster stopped by itself:", err)

		return c.clean()
	}

	if err != nil {
		return fmt.Errorf("find the cluster to stop: %w", err)
	}

	err = syscall.Kill(s.PID, syscall.SIGTERM)
	if err != nil {
		return fmt.Errorf("stop the cluster (process %d): %w", s.PID, err)
	}

	err = c.waitUntilGone(ctx)
	if err != nil {
		return fmt.Errorf("stop the cluster (process %d): %w", s.PID, err)
	}

	fmt.Fprintln(out, "cluster is down")

	return nil
}

func (c cluster) waitUntilGone(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, downLimit, fmt.Errorf("still running after %s: see %s", downLimit, c.logFile()))
	defer cancel()

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		kept, err := c.kept()
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
