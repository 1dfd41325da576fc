package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuTime returns the processor time of a process, in seconds.
func cpuTime(pid int) (float64, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return math.NaN(), errors.Join(err, ignoreMissing(pid))
	}
	total := 0.0
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return math.NaN(), fmt.Errorf("reading CPU time: %w", err)
		}
		fields := strings.Fields(string(text))
		if len(fields) == 0 {
			return math.NaN(), fmt.Errorf("reading CPU time: %s is empty", name)
		}
		nanoseconds, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return math.NaN(), fmt.Errorf("reading CPU time: %w", err)
		}
		total += nanoseconds / 1e9
	}
	return total, nil
}

// ignoreMissing returns an error for an ended process, and nil on a system without /proc, where
// there are no figures.
func ignoreMissing(pid int) error {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return nil //nolint:nilerr // a system without it is none to fail on
	}
	return fmt.Errorf("reading CPU time: process %d shows none", pid)
}

// usage is the memory of a process in bytes.
type usage struct {
	// peak is the largest resident memory so far, mapped files included.
	peak float64
	// private is the memory that is neither shared nor mapped from a file.
	private float64
	// mapped is the memory mapped from files.
	mapped float64
	// proportional counts shared pages divided by the number of their users.
	proportional float64
}

// memoryOf returns the memory of a process, from /proc.
func memoryOf(pid int) (usage, error) {
	status, err := fields(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	rollup, err := fields(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usage{}, err
	}
	proportional, ok := rollup["Pss"]
	if !ok {
		proportional = math.NaN()
	}
	return usage{
		peak: status["VmHWM"], private: status["RssAnon"], mapped: status["RssFile"], proportional: proportional,
	}, nil
}

// totalMemory returns the memory of this machine in bytes.
func totalMemory() float64 {
	info, err := fields("/proc/meminfo")
	if err != nil {
		return math.NaN()
	}
	return info["MemTotal"]
}

// fields parses lines like "RssAnon:  1234 kB" into bytes.
func fields(name string) (map[string]float64, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading memory: %w", err)
	}
	found := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		key, rest, _ := strings.Cut(lines.Text(), ":")
		number, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if value, err := strconv.ParseFloat(number, 64); err == nil && unit == "kB" {
			found[key] = value * 1024
		}
	}
	return found, nil
}

// watcher reads the memory of a process at short intervals and stores the largest figures.
type watcher struct {
	cancel context.CancelFunc
	done   chan usage
}

// watchInterval is short compared with the watched operations and long compared with a read.
const watchInterval = 5 * time.Millisecond

// watch begins to watch a process.
func watch(ctx context.Context, pid int) *watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{cancel: cancel, done: make(chan usage, 1)}
	go func() {
		var most usage
		ticker := time.NewTicker(watchInterval)
		defer ticker.Stop()
		for {
			most.look(pid)
			select {
			case <-ctx.Done():
				most.look(pid)
				w.done <- most
				return
			case <-ticker.C:
			}
		}
	}()
	return w
}

// look updates the largest figures. A process that has ended has none.
func (u *usage) look(pid int) {
	status, err := fields(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return
	}
	u.private = max(u.private, status["RssAnon"])
	u.mapped = max(u.mapped, status["RssFile"])
	u.peak = max(u.peak, status["VmHWM"])
}

// stop ends the watch and returns the largest figures.
func (w *watcher) stop() usage {
	w.cancel()
	return <-w.done
}
