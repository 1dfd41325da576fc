package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
)

// scriptedSource answers looks and loads from lists, the last element for ever.
type scriptedSource struct {
	fingerprints []string
	// results are the errors of the loads.
	results []error

	mu     sync.Mutex
	looks  int
	loads  int
	loaded []*index.Index
}

func (s *scriptedSource) Fingerprint() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return s.fingerprints[min(s.looks, len(s.fingerprints))-1], nil
}

func (s *scriptedSource) Load(ctx context.Context) (*index.Index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	x, err := index.Build(ctx, &bundles.Catalog{})
	s.loaded = append(s.loaded, x)
	if len(s.results) == 0 {
		return x, err
	}
	return x, s.results[min(s.loads, len(s.results))-1]
}

// seen returns the number of looks and loads so far.
func (s *scriptedSource) seen() (looks, loads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks, s.loads
}

// follow runs a content until the source has been looked at often enough, and
// returns its log.
func follow(t *testing.T, s *scriptedSource, looks int) (*content, string) {
	t.Helper()
	logs, loads := &logBuffer{}, 0
	c := &content{
		source: s, interval: time.Millisecond, logger: slog.New(slog.NewTextHandler(logs, nil)),
		metrics: newMetrics("", ""), onLoaded: func() {}, afterLoad: func() { loads++ },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	wait(t, "looks at the source", func() bool { got, _ := s.seen(); return got >= looks })
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
	if want := strings.Count(logs.String(), "Loaded catalog"); loads != want {
		t.Errorf("afterLoad was called %d times, want %d", loads, want)
	}
	return c, logs.String()
}

func TestContentAtRest(t *testing.T) {
	s := &scriptedSource{fingerprints: []string{"a", "a", "b", "c", "d", "d"}}
	if _, logs := follow(t, s, 20); s.loads != 2 {
		t.Errorf("loaded %d times, want once at the start and once when the writing had ended:\n%s", s.loads, logs)
	}
}

func TestContentTornAtFirst(t *testing.T) {
	s := &scriptedSource{fingerprints: []string{"a", "b", "b"}}
	c, _ := follow(t, s, 10)
	if s.loads != 2 || c.current.Load() != s.loaded[1] {
		t.Errorf("loaded %d times, want the content that was at rest to be served", s.loads)
	}
}

func TestContentTornLater(t *testing.T) {
	// The source changes during the load that follows the second "b".
	s := &scriptedSource{fingerprints: []string{"a", "a", "b", "b", "c", "c", "c"}}
	c, logs := follow(t, s, 20)
	if s.loads != 3 || c.current.Load() != s.loaded[2] {
		t.Errorf("loaded %d times, want the content that was at rest to be served:\n%s", s.loads, logs)
	}
}

func TestContentNeverAtRest(t *testing.T) {
	s := &scriptedSource{}
	for range 1000 {
		s.fingerprints = append(s.fingerprints, "a", "b")
	}
	c := &content{source: s, logger: slog.New(slog.DiscardHandler), metrics: newMetrics("", ""), onLoaded: func() {}}
	if err := c.run(t.Context()); !errors.Is(err, errRestless) || s.loads != maxRestless {
		t.Errorf("got %v after %d loads", err, s.loads)
	}
}

func TestContentRetry(t *testing.T) {
	unreadable := bundles.Problems{{File: "f", Message: "cannot be read: open: " + fs.ErrPermission.Error(), Unreadable: true}}
	broken := bundles.Problems{{File: "f", Message: "is broken"}}
	cases := map[string]struct {
		reason  string
		results []error
		loads   int
		lines   int
		served  bool
	}{
		"Unreadable": {reason: "another attempt may succeed", results: []error{nil, unreadable, unreadable, unreadable, nil}, loads: 5, lines: 1, served: true},
		"Broken":     {reason: "nothing changes unless the files do", results: []error{nil, broken, nil}, loads: 2, lines: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &scriptedSource{fingerprints: []string{"a", "a", "b"}, results: tc.results}
			c, logs := follow(t, s, 60)
			if s.loads != tc.loads || strings.Count(logs, "Catalog problem") != tc.lines {
				t.Errorf("%s: loaded %d times, want %d; want the problem %d times in the log:\n%s", tc.reason, s.loads, tc.loads, tc.lines, logs)
			}
			if got := c.current.Load() == s.loaded[len(s.loaded)-1]; got != tc.served {
				t.Errorf("%s: the last content is served: %v", tc.reason, got)
			}
			if got, want := c.metrics.gathered(t, "chandlery_registry_catalog_problems"), float64(len(bundles.AsProblems(tc.results[tc.loads-1]))); got != want {
				t.Errorf("%s: the gauge of problems is %v, want %v", tc.reason, got, want)
			}
		})
	}
}

// gathered returns the value of a gauge.
func (m *metrics) gathered(t *testing.T, name string) float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// cachedSource is a source whose cache holds something else than the content.
type cachedSource struct {
	scriptedSource

	same  bool
	fresh *index.Index
}

func (s *cachedSource) Verify(_ context.Context, x *index.Index) (bool, error) {
	return s.same || x == s.fresh, nil
}

func (s *cachedSource) LoadFresh(context.Context) (*index.Index, error) { return s.fresh, nil }

func TestContentDistrust(t *testing.T) {
	cases := map[string]struct {
		reason string
		same   bool
		damage bool
		fresh  bool
	}{
		"Same":    {reason: "an index of the content stays", same: true},
		"Stale":   {reason: "an index of another content is replaced", fresh: true},
		"Damaged": {reason: "so is a damaged one", same: true, damage: true, fresh: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fresh, err := index.Build(t.Context(), &bundles.Catalog{})
			if err != nil {
				t.Fatal(err)
			}
			s := &cachedSource{scriptedSource: scriptedSource{fingerprints: []string{"a"}}, same: tc.same, fresh: fresh}
			loaded := make(chan struct{}, 1)
			c := &content{
				source: s, interval: time.Millisecond, logger: slog.New(slog.DiscardHandler), metrics: newMetrics("", ""),
				onLoaded: func() { loaded <- struct{}{} }, suspect: make(chan struct{}, 1), verifyAfter: time.Millisecond,
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.run(ctx) }()
			<-loaded
			if tc.damage {
				c.damaged(fresh, index.ErrDamaged) // one that is not served any more
				c.damaged(c.current.Load(), index.ErrDamaged)
			}
			if tc.fresh {
				wait(t, "a fresh index", func() bool { return c.current.Load() == fresh })
			} else {
				looks, _ := s.seen()
				wait(t, "more looks", func() bool { now, _ := s.seen(); return now > looks+20 })
			}
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("run: %v", err)
			}
			if got := c.current.Load() == fresh; got != tc.fresh {
				t.Errorf("%s: the fresh index is served: %v", tc.reason, got)
			}
		})
	}
}

// warmSource is a source that knows its content without reading it.
type warmSource struct {
	scriptedSource

	known *index.Index
}

func (s *warmSource) Warm(context.Context) (*index.Index, string) { return s.known, "a" }

func TestContentWarm(t *testing.T) {
	known, err := index.Build(t.Context(), &bundles.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		known  *index.Index
		loads  int
	}{
		"Known":   {"what is known is not read", known, 0},
		"Unknown": {"what is not known is read", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &warmSource{scriptedSource: scriptedSource{fingerprints: []string{"a"}}, known: tc.known}
			loaded := make(chan struct{}, 1)
			c := &content{
				source: s, interval: time.Millisecond, logger: slog.New(slog.DiscardHandler), metrics: newMetrics("", ""),
				onLoaded: func() { loaded <- struct{}{} },
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.run(ctx) }()
			<-loaded
			before, _ := s.seen()
			wait(t, "more looks", func() bool { now, _ := s.seen(); return now > before+5 })
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("run: %v", err)
			}
			if _, loads := s.seen(); loads != tc.loads || tc.known != nil && c.current.Load() != tc.known {
				t.Errorf("%s: read %d times", tc.reason, loads)
			}
		})
	}
}
