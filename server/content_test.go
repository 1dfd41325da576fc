package server

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/server/source"
)

// scriptedSource returns fingerprints and load results from lists, and repeats the last element.
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

// seen returns the number of fingerprints and loads so far.
func (s *scriptedSource) seen() (looks, loads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks, s.loads
}

// follow runs a content until the source has been checked looks times, and returns its log.
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
	if err := c.run(t.Context()); !errors.Is(err, errUnstable) || s.loads != maxUnstable {
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
	// unverified and failures are the errors that Verify and LoadFresh return before they succeed.
	unverified []error
	failures   []error
	// freshLoads counts the calls of LoadFresh.
	freshLoads int
	// change is the number of the check after the first fresh load at which the source has changed.
	// 1 is during that load, 0 is never.
	change int
}

func (s *cachedSource) Fingerprint() (string, error) {
	s.mu.Lock()
	if s.freshLoads > 0 && s.change > 0 {
		s.change--
		if s.change == 0 {
			s.fingerprints = []string{"changed"}
		}
	}
	s.mu.Unlock()
	return s.scriptedSource.Fingerprint()
}

func (s *cachedSource) Verify(_ context.Context, x *index.Index) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.same || x == s.fresh, next(&s.unverified)
}

// LoadFresh returns the fresh index, or a different one each time if there is none.
func (s *cachedSource) LoadFresh(ctx context.Context) (*index.Index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freshLoads++
	if err := next(&s.failures); err != nil {
		return nil, err
	}
	if s.fresh == nil {
		return index.Build(ctx, &bundles.Catalog{})
	}
	return s.fresh, nil
}

// next removes and returns the first of a list of errors; nil if the list is empty.
func next(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

// Sources implement these interfaces, which the content looks for at run time.
var (
	_ cacheWarmer = source.Dir{}
	_ verifier    = source.Dir{}
	_ verifier    = (*source.Image)(nil)
	_ prebuilt    = source.File{}
)

// serving runs the content of a source until the test ends or stop is called. It returns the
// content when it is loaded.
func serving(t *testing.T, s Source, change func(*content)) (c *content, logs *logBuffer, stop func()) {
	t.Helper()
	logs = &logBuffer{}
	loaded, done := make(chan struct{}, 1), make(chan error, 1)
	c = &content{
		source: s, interval: time.Millisecond, logger: slog.New(slog.NewTextHandler(logs, nil)), metrics: newMetrics("", ""),
		onLoaded: func() { loaded <- struct{}{} }, servedIndex: servedIndex{reports: make(chan struct{}, 1)}, verifyAfter: time.Millisecond,
	}
	if change != nil {
		change(c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- c.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-loaded:
	case err := <-done:
		done <- err
		t.Fatalf("nothing is served: %v", err)
	}
	return c, logs, stop
}

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
			c, _, stop := serving(t, s, nil)
			if tc.damage {
				c.damaged(fresh, index.ErrDamaged) // an index that is no longer served
				c.damaged(c.current.Load(), index.ErrDamaged)
			}
			if tc.fresh {
				wait(t, "a fresh index", func() bool { return c.current.Load() == fresh })
			} else {
				looks, _ := s.seen()
				wait(t, "more looks", func() bool { now, _ := s.seen(); return now > looks+20 })
			}
			stop()
			if got := c.current.Load() == fresh; got != tc.fresh {
				t.Errorf("%s: the fresh index is served: %v", tc.reason, got)
			}
		})
	}
}

// TestContentDistrustLasts checks that an untrusted index is rebuilt although the first attempts fail.
func TestContentDistrustLasts(t *testing.T) {
	unreadable := bundles.Problems{{File: "f", Message: "cannot be read", Unreadable: true}}
	cases := map[string]struct {
		reason   string
		interval time.Duration
		source   *cachedSource
	}{
		"Unreadable": {
			reason: "another attempt may read it", interval: time.Millisecond,
			source: &cachedSource{failures: []error{unreadable, unreadable, unreadable}},
		},
		"NoSpace": {
			reason: "another attempt may find room", interval: time.Millisecond,
			source: &cachedSource{failures: []error{syscall.ENOSPC, syscall.ENOSPC}},
		},
		"Restless": {
			reason: "it comes to rest", interval: time.Millisecond,
			source: &cachedSource{change: 1},
		},
		"Changed": {
			reason: "other content is no reason to trust the cache again", interval: time.Millisecond,
			source: &cachedSource{change: 2, failures: []error{unreadable, unreadable}},
		},
		"NotFollowed": {reason: "a source that is not followed is asked as well", source: &cachedSource{failures: []error{unreadable, unreadable}}},
		"Unverified": {
			reason: "what could not be compared is compared again", interval: time.Millisecond,
			source: &cachedSource{unverified: []error{syscall.EIO, syscall.EIO, syscall.EIO}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.source
			states := 1 + min(s.change, 1)
			s.fingerprints = []string{"a"}
			var err error
			if s.fresh, err = index.Build(t.Context(), &bundles.Catalog{}); err != nil {
				t.Fatal(err)
			}
			c, logs, stop := serving(t, s, func(c *content) { c.interval, c.renewAfter = tc.interval, time.Millisecond })
			wait(t, tc.reason, func() bool { return c.current.Load() == s.fresh })
			stop()
			if s.loads != 1 || len(s.failures) != 0 || len(s.unverified) != 0 {
				t.Errorf("%s: trusted %d times what was kept:\n%s", tc.reason, s.loads, logs)
			}
			// Each state of the content logs its problems.
			for line, most := range map[string]int{"Cannot compare": 1, "rebuilding it": 1, "Catalog problem": states} {
				if count := strings.Count(logs.String(), line); count > most {
					t.Errorf("%s: the log says %d times %q:\n%s", tc.reason, count, line, logs)
				}
			}
			if failure := c.announcer.State().Failure; failure != nil {
				t.Errorf("%s: the failure is announced still: %v", tc.reason, failure)
			}
		})
	}
}

// TestContentDamagedAgain has calls report damage all the time, whatever is loaded.
func TestContentDamagedAgain(t *testing.T) {
	for name, interval := range map[string]time.Duration{"Followed": time.Millisecond, "NotFollowed": 0} {
		t.Run(name, func(t *testing.T) {
			s := &cachedSource{scriptedSource: scriptedSource{fingerprints: []string{"a"}}, same: true}
			c, logs, stop := serving(t, s, func(c *content) { c.interval, c.renewAfter = interval, time.Millisecond })
			calls, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for {
					select {
					case <-calls:
						return
					default:
						c.damaged(c.current.Load(), index.ErrDamaged)
						runtime.Gosched()
					}
				}
			}()
			wait(t, "looks at the source", func() bool { looks, _ := s.seen(); return looks >= 100 })
			close(calls)
			<-ended
			stop()
			// The pauses between the loads are 1, 2, 4, ... checks.
			if most := bits.Len(uint(s.looks)) + 2; s.freshLoads < 2 || s.freshLoads > most {
				t.Errorf("loaded %d times in %d looks, want %d at most", s.freshLoads, s.looks, most)
			}
			if lines := strings.Count(logs.String(), "rebuilding it"); lines > s.freshLoads+1 {
				t.Errorf("%d lines for %d loads:\n%s", lines, s.freshLoads, logs)
			}
		})
	}
}

// damagedFile builds an index file of a catalog and damages a bundle in it.
func damagedFile(t *testing.T, dir source.Dir, name string) {
	t.Helper()
	if _, err := dir.Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte("example.org/p:one"))
	if at < 0 {
		t.Fatal("the image is not in the index")
	}
	text[at] = 'X'
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func smallDir(t *testing.T) source.Dir {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "c.json"), []byte(`{"schema":"olm.package","name":"p","defaultChannel":"c"}
{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"p.v1"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"example.org/p:one","properties":[
  {"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	return source.Dir{Path: dir}
}

// ask requests the damaged bundle, as a call does.
func (c *content) ask() error {
	x := c.current.Load()
	_, err := x.Bundle("p", "c", "p.v1")
	if errors.Is(err, index.ErrDamaged) {
		c.damaged(x, err)
	}
	return err
}

// TestContentDamagedFile serves an index that cannot be rebuilt until a user
// replaces it.
func TestContentDamagedFile(t *testing.T) {
	dir, file := smallDir(t), filepath.Join(t.TempDir(), "index")
	damagedFile(t, dir, file)
	c, logs, _ := serving(t, source.File{Path: file}, nil)
	wait(t, "the announcement", func() bool {
		if err := c.ask(); !errors.Is(err, index.ErrDamaged) {
			t.Fatalf("asking for the damaged bundle: %v", err)
		}
		return c.announcer.State().Failure != nil
	})
	for range 1000 {
		_ = c.ask()
	}
	problems := bundles.AsProblems(c.announcer.State().Failure)
	if len(problems) != 1 || problems[0].File != file || !strings.Contains(problems[0].Remedy, "rebuild the file") {
		t.Errorf("announced %v", problems)
	}
	if got := c.metrics.gathered(t, "chandlery_registry_catalog_problems"); got != 1 {
		t.Errorf("the gauge of problems is %v", got)
	}
	if got := logs.String(); strings.Count(got, "\n") != 2 || strings.Count(got, "Loaded catalog") != 1 || !strings.Contains(got, "rebuild the file") {
		t.Errorf("want one line about the load and one about the damage:\n%s", got)
	}
	if _, err := dir.Create(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	wait(t, "the file that was replaced", func() bool { return c.ask() == nil })
	if failure := c.announcer.State().Failure; failure != nil || c.metrics.gathered(t, "chandlery_registry_catalog_problems") != 0 {
		t.Errorf("the damage is announced still: %v", failure)
	}
}

// TestContentDamagedCache starts with a cached index that is damaged.
func TestContentDamagedCache(t *testing.T) {
	for name, verifyAfter := range map[string]time.Duration{"Verified": time.Millisecond, "Asked": time.Hour} {
		t.Run(name, func(t *testing.T) {
			dir := smallDir(t)
			dir.Cache.Dir = t.TempDir()
			damagedFile(t, dir, filepath.Join(dir.Cache.Dir, source.IndexFile))
			c, logs, _ := serving(t, dir, func(c *content) { c.verifyAfter = verifyAfter })
			damaged := c.current.Load()
			if verifyAfter == time.Hour {
				_ = c.ask()
			}
			wait(t, "an index that was rebuilt", func() bool { return c.current.Load() != damaged })
			if err := c.ask(); err != nil {
				t.Errorf("%v; the log:\n%s", err, logs)
			}
			again, err := dir.Load(t.Context())
			if err != nil || again.Check() != nil {
				t.Errorf("the cache holds the damage still: %v", err)
			}
		})
	}
}

// warmSource is a source that implements warmer.
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
			c, _, stop := serving(t, s, nil)
			before, _ := s.seen()
			wait(t, "more looks", func() bool { now, _ := s.seen(); return now > before+5 })
			stop()
			if _, loads := s.seen(); loads != tc.loads || tc.known != nil && c.current.Load() != tc.known {
				t.Errorf("%s: read %d times", tc.reason, loads)
			}
		})
	}
}
