package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/process"
)

const (
	list  = "/apis/packages.operators.coreos.com/v1/namespaces/" + home + "/packagemanifests"
	table = "application/json;as=Table;g=meta.k8s.io;v=v1"
	plain = "application/json"
	// crowd is the number of full lists at once.
	crowd = 10
	// ticksPerSecond is the unit of processor times in /proc.
	ticksPerSecond = 100
)

// figures are the results of a server.
type figures struct {
	name     string
	packages int
	// ready is the time from the start to the first complete answer.
	ready time.Duration
	// table and list are medians of single calls, and crowd is the time of all lists at once.
	table, list, crowd time.Duration
	// idle is the anonymous memory before the calls, and peak the largest resident memory after them, in bytes.
	idle, peak int64
	// processor is the processor time of the server for all calls, without what it needs at rest in that time.
	processor time.Duration
}

// measure runs both servers, one after the other, and a whole supervisor with and without the API.
func measure(ctx context.Context, o options, dir, peer string) (all []figures, rest restFigures, err error) {
	s, tearDown, err := setUp(ctx, o, dir)
	if err != nil {
		return nil, rest, err
	}
	defer func() { err = errors.Join(err, tearDown()) }()
	for _, c := range candidates(peer) {
		f, err := s.run(ctx, c)
		if err != nil {
			return nil, rest, fmt.Errorf("measuring %s: %w", c.name, err)
		}
		all = append(all, f)
	}
	if all[0].packages != all[1].packages {
		return nil, rest, fmt.Errorf("%s serves %d packages, %s %d", all[0].name, all[0].packages, all[1].name, all[1].packages)
	}
	if rest, err = s.measureRest(ctx); err != nil {
		return nil, rest, fmt.Errorf("measuring a whole supervisor: %w", err)
	}
	return all, rest, nil
}

// observe measures a running server.
func (s *scene) observe(ctx context.Context, name string, p *process.Process) (figures, error) {
	f, begun := figures{name: name}, time.Now()
	var err error
	if f.packages, err = s.awaitPackages(ctx, p); err != nil {
		return f, err
	}
	f.ready = time.Since(begun)
	idle, err := processor(p.PID())
	if err != nil {
		return f, err
	}
	if !pause.For(ctx, s.rest) {
		return f, context.Cause(ctx)
	}
	if f.idle, err = memory(p.PID(), "RssAnon:"); err != nil {
		return f, err
	}
	before, err := processor(p.PID())
	if err != nil {
		return f, err
	}
	called := time.Now()
	if err := s.call(ctx, &f); err != nil {
		return f, err
	}
	took := time.Since(called)
	after, err := processor(p.PID())
	if err != nil {
		return f, err
	}
	f.processor = after - before - time.Duration(float64(before-idle)*took.Seconds()/s.rest.Seconds())
	f.peak, err = memory(p.PID(), "VmHWM:")
	return f, err
}

// awaitPackages waits until two answers in a row have the same number of packages, and returns it.
func (s *scene) awaitPackages(ctx context.Context, p *process.Process) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := 0
	err := pause.Until(ctx, 2*time.Second, func() string {
		if err := p.Unexpected(); err != nil {
			cancel()
			return err.Error()
		}
		text, err := s.paths.Get().AbsPath(list).SetHeader("Accept", table).DoRaw(ctx)
		if err != nil {
			return err.Error()
		}
		var found metav1.Table
		if err := json.Unmarshal(text, &found); err != nil {
			return err.Error()
		}
		n := len(found.Rows)
		if n > 0 && n == last {
			return ""
		}
		last = n
		return fmt.Sprintf("%d packages", n)
	})
	if err != nil {
		return 0, fmt.Errorf("waiting for packages: %w", err)
	}
	return last, nil
}

// call sends the calls and records their times.
func (s *scene) call(ctx context.Context, f *figures) error {
	var err error
	if f.table, err = s.median(ctx, table); err != nil {
		return err
	}
	if f.list, err = s.median(ctx, plain); err != nil {
		return err
	}
	begun := time.Now()
	err = s.listAtOnce(ctx)
	f.crowd = time.Since(begun)
	return err
}

// listAtOnce sends full lists at once.
func (s *scene) listAtOnce(ctx context.Context) error {
	calls, gathered := errgroup.WithContext(ctx)
	for range crowd {
		calls.Go(func() error {
			_, err := s.once(gathered, plain)
			return err
		})
	}
	return calls.Wait()
}

// median returns the median time of calls.
func (s *scene) median(ctx context.Context, accept string) (time.Duration, error) {
	var times []time.Duration
	for range s.calls {
		took, err := s.once(ctx, accept)
		if err != nil {
			return 0, err
		}
		times = append(times, took)
	}
	return median(times), nil
}

// median returns the median of at least one time.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// once sends a call and returns its time.
func (s *scene) once(ctx context.Context, accept string) (time.Duration, error) {
	begun := time.Now()
	if _, err := s.paths.Get().AbsPath(list).SetHeader("Accept", accept).DoRaw(ctx); err != nil {
		return 0, fmt.Errorf("listing packages: %w", err)
	}
	return time.Since(begun), nil
}

// memory returns a field of the memory of a process, in bytes.
func memory(pid int, field string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the server: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), field)
		if !found {
			continue
		}
		kibibytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		return kibibytes << 10, err
	}
	return 0, fmt.Errorf("reading the memory of the server: no %s", field)
}

// processor returns the processor time of a process.
func processor(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of the server: %w", err)
	}
	// The name in parentheses may have blanks. Fields 14 and 15 are the times of the user and of the system.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading the processor time of the server: %q", text)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of the server: %w", err)
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticksPerSecond, err
}

// address is the address of the API server.
type address struct{ host, port string }

// hostPort returns the host and the port of a URL.
func hostPort(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil {
		return address{}, fmt.Errorf("reading the address of the API server: %w", err)
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return address{}, fmt.Errorf("reading the address of the API server: %w", err)
	}
	return address{host, port}, nil
}
