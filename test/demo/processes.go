package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// grace is how long a program may take to stop.
const grace = 20 * time.Second

// processes is the set of our running processes. A process that ends without being stopped ends the demo.
type processes struct {
	bin, logs string
	fail      context.CancelCauseFunc

	mu      sync.Mutex
	running []*process.Process // in the order of their start
}

// task is a program to run with its arguments. Its name is also the name of its log.
type task struct {
	program, name string
	args          []string
}

func (ps *processes) launch(ctx context.Context, t task) (*process.Process, error) {
	return process.Start(ctx, process.Spec{
		Name: t.name,
		Path: filepath.Join(ps.bin, t.program),
		Args: t.args,
		Log:  filepath.Join(ps.logs, t.name+".log"),
	})
}

// finish runs a program and waits until it has ended.
func (ps *processes) finish(ctx context.Context, t task, limit time.Duration) error {
	p, err := ps.launch(ctx, t)
	if err != nil {
		return err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.Done():
		return p.Result()
	case <-timer.C:
		return errors.Join(&lateError{p.Name() + " ends", limit}, p.Kill())
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.Kill())
	}
}

// start runs a program that runs until it is stopped.
func (ps *processes) start(ctx context.Context, t task) error {
	p, err := ps.launch(ctx, t)
	if err != nil {
		return err
	}
	ps.mu.Lock()
	ps.running = append(ps.running, p)
	ps.mu.Unlock()
	go func() {
		<-p.Done()
		if ps.forget(p) { // the process was not stopped by the demo
			ps.fail(p.Unexpected())
		}
	}()
	return nil
}

// forget removes a process from the running ones. It reports whether it was one of them.
func (ps *processes) forget(p *process.Process) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	i := slices.Index(ps.running, p)
	if i < 0 {
		return false
	}
	ps.running = slices.Delete(ps.running, i, i+1)
	return true
}

// stop ends one process.
func (ps *processes) stop(p *process.Process) error {
	ps.forget(p)
	return p.Stop(grace)
}

// named returns the running process with a name, or nil.
func (ps *processes) named(name string) *process.Process {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.running {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// stopAll stops all processes, the last started first.
func (ps *processes) stopAll() error {
	ps.mu.Lock()
	running := slices.Clone(ps.running)
	ps.mu.Unlock()
	failures := make([]error, 0, len(running))
	for _, p := range slices.Backward(running) {
		failures = append(failures, ps.stop(p))
	}
	return errors.Join(failures...)
}

// ready waits until the URL answers with status 200.
func ready(ctx context.Context, url string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		last := answers(ctx, url)
		if last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		}
	}
}

// answers returns an error unless the URL answers with status 200.
func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking for readiness: %w", err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking for readiness: %w", err)
	}
	if err := reply.Body.Close(); err != nil {
		return fmt.Errorf("asking for readiness: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, reply.Status)
	}
	return nil
}

// address returns host:port on the loopback interface, with the wanted port if it is free and
// another one otherwise. Port 0 requests any. No port is returned twice by this process.
func address(ctx context.Context, want int) (string, error) {
	if want != 0 {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(want)))
		if err == nil {
			return listener.Addr().String(), listener.Close()
		}
	}
	port, err := ports.Reserve(ctx)
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return port.Address(), nil
}
