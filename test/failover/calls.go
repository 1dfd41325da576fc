package failover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/chandlery/chandlery/test/caller"
	"github.com/chandlery/chandlery/test/nodes"
)

// Calls are the calls of a client to one target, which continue until Stop.
type Calls struct {
	stop func() error

	mu    sync.Mutex
	calls []caller.Call
}

// Call starts a client of a target: a process where the clients of the cluster are, which calls the
// ClusterIP of the Service.
func (s *Scene) Call(ctx context.Context, target Target) (*Calls, error) {
	address, err := s.address(ctx, target)
	if err != nil {
		return nil, err
	}
	cmd := nodes.Command(ctx, nodes.Client, s.program("caller"), address)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a client of %s: %w", address, err)
	}
	cmd.Stderr = s.progress
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a client of %s: %w", address, err)
	}
	c := &Calls{}
	read := make(chan error, 1)
	go func() { read <- c.collect(bufio.NewScanner(out)) }()
	c.stop = func() error {
		signalled := cmd.Process.Signal(os.Interrupt)
		return errors.Join(signalled, <-read, cmd.Wait())
	}
	if err := c.wellBy(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// wellBy waits until calls succeed. At first, the Service may be unreachable.
func (c *Calls) wellBy(ctx context.Context) error {
	const span = time.Second
	begun := time.Now()
	return Eventually(ctx, "calls to go well", func(context.Context) string {
		for _, style := range caller.Styles() {
			seen := c.Summary(style, time.Now().Add(-span))
			if time.Since(begun) < 2*span || seen.Calls == 0 || seen.Failed > 0 {
				return fmt.Sprintf("%s: %+v", style, seen)
			}
		}
		return ""
	})
}

// Stop stops the client. Its calls remain available.
func (c *Calls) Stop() error { return c.stop() }

func (c *Calls) collect(lines *bufio.Scanner) error {
	for lines.Scan() {
		var call caller.Call
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return fmt.Errorf("reading what a client says: %w", err)
		}
		c.mu.Lock()
		c.calls = append(c.calls, call)
		c.mu.Unlock()
	}
	return lines.Err()
}

// Summary returns what clients of a style have seen since a time.
func (c *Calls) Summary(style caller.Style, from time.Time) caller.Summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	return caller.Summarise(slices.Clone(c.calls), style, from, time.Now())
}
