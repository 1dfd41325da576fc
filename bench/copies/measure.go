package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// stage is the state of an idle supervisor after a change.
type stage struct {
	name string
	// took is the time until all copies were created or deleted.
	took time.Duration
	// memory is the private memory of the idle process. peak is the largest memory it has had.
	memory, peak int64
	// wrote is the number of changes that it requested until it was idle. idle is the number of
	// changes while nothing happened.
	wrote, idle int
}

// figures are the measured values.
type figures struct {
	o      options
	stages []stage
}

// measure sets everything up, runs the stages and removes everything.
func measure(ctx context.Context, o options, dir string) (_ *figures, err error) {
	s, tearDown, err := setUp(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tearDown()) }()
	f := &figures{o: o}
	for _, step := range []struct {
		name  string
		fresh bool
		do    func(context.Context) (time.Duration, error)
	}{
		{"copies off, operators installed", true, func(ctx context.Context) (time.Duration, error) { return since(time.Now(), s.settled(ctx, false)) }},
		{"copies turned on", false, func(ctx context.Context) (time.Duration, error) { return s.turn(ctx, true) }},
		{"copies on, supervisor restarted", true, func(ctx context.Context) (time.Duration, error) { return since(time.Now(), s.settled(ctx, true)) }},
		{"copies turned off", false, func(ctx context.Context) (time.Duration, error) { return s.turn(ctx, false) }},
		{"copies off, supervisor restarted", true, func(ctx context.Context) (time.Duration, error) { return since(time.Now(), s.settled(ctx, false)) }},
	} {
		measured, err := s.stage(ctx, step.fresh, step.do)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		measured.name = step.name
		f.stages = append(f.stages, measured)
		fmt.Fprintln(os.Stderr, measured.line())
	}
	return f, nil
}

func since(began time.Time, err error) (time.Duration, error) { return time.Since(began), err }

// stage runs one stage, with a new supervisor if fresh is set.
func (s *scene) stage(ctx context.Context, fresh bool, do func(context.Context) (time.Duration, error)) (m stage, err error) {
	before := 0
	if fresh {
		err = errors.Join(s.end(), s.begin(ctx))
	} else {
		before, err = s.writes(ctx)
	}
	if err != nil {
		return m, err
	}
	if m.took, err = do(ctx); err != nil {
		return m, err
	}
	after, err := s.quiet(ctx)
	if err != nil {
		return m, err
	}
	m.wrote = after - before
	if err := pause(ctx, s.o.rest); err != nil {
		return m, err
	}
	now, err := s.writes(ctx)
	if err != nil {
		return m, err
	}
	m.idle = now - after
	m.memory, m.peak, err = s.memory()
	return m, err
}

// quiet waits until the supervisor has written nothing for some time.
func (s *scene) quiet(ctx context.Context) (writes int, err error) {
	const still = 10 * time.Second
	var since time.Time
	last := -1
	err = s.await(ctx, "the writes to end", func(ctx context.Context) (bool, error) {
		if writes, err = s.writes(ctx); err != nil {
			return false, nil //nolint:nilerr // The supervisor is starting; if it never does, the wait ends.
		}
		if writes != last {
			last, since = writes, time.Now()
		}
		return time.Since(since) >= still, nil
	})
	return writes, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// writes returns the number of requests of the supervisor that change something, without renewals
// of its Lease, which is the only object written with PUT.
func (s *scene) writes(ctx context.Context) (sum int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/metrics", http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("reading metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("reading metrics: %w", err)
	}
	for _, m := range families["rest_client_requests_total"].GetMetric() {
		switch method(m) {
		case http.MethodPost, http.MethodPatch, http.MethodDelete:
			sum += int(m.GetCounter().GetValue())
		}
	}
	return sum, nil
}

func method(m *dto.Metric) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == "method" {
			return l.GetValue()
		}
	}
	return ""
}

// memory returns the supervisor's private memory and its peak including shared memory, in bytes.
func (s *scene) memory() (own, peak int64, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", s.supervisor.PID()))
	if err != nil {
		return 0, 0, fmt.Errorf("looking at the supervisor's memory: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		field, rest, _ := strings.Cut(lines.Text(), ":")
		kib, numeric := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch {
		case numeric != nil:
		case field == "RssAnon":
			own = kib << 10
		case field == "VmHWM":
			peak = kib << 10
		}
	}
	if own == 0 || peak == 0 {
		return 0, 0, fmt.Errorf("looking at the supervisor's memory: no RssAnon or no VmHWM, %w", errors.Join(errNoField, lines.Err()))
	}
	return own, peak, nil
}

// errNoField means that this kernel lacks a field that the benchmark reads.
var errNoField = errors.New("the kernel does not say")
