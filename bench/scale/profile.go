package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// slice is the length of one profile of processor time, in seconds. The end of an installation is
// unknown beforehand. go tool pprof adds up several profiles.
const slice = 5

// profiler stores profiles of a process that serves them over HTTP.
type profiler struct {
	// address is the address of the profiles. prefix is the prefix of the file paths.
	address, prefix string
}

// start begins to store profiles of processor time. It returns a function that waits for the last
// one and then stores a profile of allocations.
func (p profiler) start(ctx context.Context) (func() error, error) {
	if err := os.MkdirAll(filepath.Dir(p.prefix), 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for profiles: %w", err)
	}
	if err := p.store(ctx, "allocs", "allocs-before"); err != nil {
		return nil, err
	}
	end, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- p.slices(ctx, end) }()
	return func() error {
		close(end)
		return errors.Join(<-done, p.store(ctx, "allocs", "allocs"))
	}, nil
}

// slices stores one profile after the other until end is closed.
func (p profiler) slices(ctx context.Context, end <-chan struct{}) error {
	for i := 1; ; i++ {
		select {
		case <-end:
			return nil
		default:
		}
		if err := p.store(ctx, fmt.Sprintf("profile?seconds=%d", slice), fmt.Sprintf("cpu-%03d", i)); err != nil {
			return err
		}
	}
}

// store stores one profile in a file.
func (p profiler) store(ctx context.Context, profile, name string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/debug/pprof/"+profile, http.NoBody)
	if err != nil {
		return fmt.Errorf("reading profile %s: %w", name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("reading profile %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("reading profile %s: %s", name, response.Status)
	}
	file, err := os.Create(p.prefix + name + ".pb.gz")
	if err != nil {
		return fmt.Errorf("storing profile %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, response.Body); err != nil {
		return fmt.Errorf("storing profile %s: %w", name, err)
	}
	return nil
}
