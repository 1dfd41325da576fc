package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/server/extension"
)

// content holds the served index and keeps it up to date.
type content struct {
	servedIndex

	source   Source
	interval time.Duration
	logger   *slog.Logger
	metrics  *metrics
	// announcer publishes the state of the content to clients.
	announcer extension.Announcer
	// renewAfter is the time between two attempts to recreate the index if there is no interval;
	// defaultRenewPause by default.
	renewAfter time.Duration
	// verifyAfter is the time until the served index is compared with its source.
	verifyAfter time.Duration
	// onLoaded is called once, after the first load.
	onLoaded func()
	// beforeLoad is called before each load; nil for nothing.
	beforeLoad func()
	// afterLoad is called after each load that succeeds; nil for nothing.
	afterLoad func()
}

// servedIndex is the index that the server serves, with the damage that was found in it.
type servedIndex struct {
	current atomic.Pointer[index.Index]
	// found is the damage; nil for none.
	found atomic.Pointer[damage]
	// reports receives a value when found changes.
	reports chan struct{}
}

// damage is the reason not to trust an index.
type damage struct {
	index *index.Index
	err   error
}

// damaged records that an index is damaged. Any number of calls may report it; the first report of
// an index counts.
func (s *servedIndex) damaged(x *index.Index, err error) {
	before := s.found.Load()
	known := before != nil && before.index == x
	if known || s.current.Load() != x || !s.found.CompareAndSwap(before, &damage{x, err}) {
		return
	}
	select {
	case s.reports <- struct{}{}:
	default: // a check is pending
	}
}

// set replaces the served index by one without damage.
func (s *servedIndex) set(x *index.Index) {
	s.current.Store(x)
	s.found.Store(nil)
}

// damage returns the error of the served index; nil if it has no damage.
func (s *servedIndex) damage() error {
	found := s.found.Load()
	if found == nil || found.index != s.current.Load() {
		return nil
	}
	return found.err
}

const (
	// maxUnstable is how many loads in a row may find that the source has changed before the failure is reported.
	maxUnstable = 20
	// unstablePause is the time between two attempts at the first load.
	unstablePause = 100 * time.Millisecond
	// maxBackoff is the largest number of intervals between two attempts after a failure.
	maxBackoff = 64
	// defaultRenewPause is the time between two attempts to recreate an index whose source is not followed.
	defaultRenewPause = 5 * time.Second
)

// errUnstable is returned by a load during which the source changed. What was read may mix old and new content.
var errUnstable = errors.New("the content changed while it was read")

// run loads the content and then follows the source until ctx ends. The first load must succeed.
func (c *content) run(ctx context.Context) error {
	seen, err := c.first(ctx)
	if err != nil {
		return err
	}
	c.onLoaded()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { c.verify(ctx); return nil })
	group.Go(func() error { c.follow(ctx, seen); return nil })
	return group.Wait()
}

// cacheWarmer is a source that may have the index of its content in a cache.
type cacheWarmer interface {
	// Warm returns the index of the current content and the content's fingerprint; nil if the
	// content must be read.
	Warm(ctx context.Context) (x *index.Index, fingerprint string)
}

// verifier is a source that may return a cached index.
type verifier interface {
	// Verify reports whether an index matches the content.
	Verify(ctx context.Context, x *index.Index) (bool, error)
	// LoadFresh loads the content and ignores the cache.
	LoadFresh(ctx context.Context) (*index.Index, error)
}

// prebuilt is a source whose index was built elsewhere and cannot be rebuilt here.
type prebuilt interface {
	// Damaged returns an error that names the damaged index and the remedy.
	Damaged(err error) error
}

// verifyPause is how long a server serves before it compares the cached index with the content. The
// comparison must not slow down the start.
const verifyPause = 10 * time.Second

// verify compares the served index with its source once. If the source cannot be read, it tries
// again after growing pauses.
func (c *content) verify(ctx context.Context) {
	source, ok := c.source.(verifier)
	if !ok {
		return
	}
	logged := ""
	for pause := c.verifyAfter; ; pause = min(2*pause, maxBackoff*c.verifyAfter) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		x := c.current.Load()
		same := false
		err := index.Guard(func() (err error) {
			same, err = source.Verify(ctx, x)
			return err
		})
		if err == nil && !same {
			c.damaged(x, errOtherContent)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != logged {
			logged = text
			c.logger.WarnContext(ctx, "Cannot compare the index with the content, trying again later", "error", err)
		}
	}
}

// errOtherContent is the error of an index that does not match its source.
var errOtherContent = errors.New("the index is not what was made of the content")

// first loads the first content and returns its fingerprint. It tries again while the source changes.
func (c *content) first(ctx context.Context) (string, error) {
	source, isWarmer := c.source.(cacheWarmer)
	if isWarmer {
		start := time.Now()
		if x, seen := source.Warm(ctx); x != nil {
			c.serve(ctx, x, start)
			return seen, nil
		}
	}
	for attempt := 1; ; attempt++ {
		seen := c.fingerprint(ctx)
		// Warm has already tried the cache.
		err := c.load(ctx, seen, isWarmer)
		if !errors.Is(err, errUnstable) || attempt == maxUnstable {
			return seen, err
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("loading catalog: %w", context.Cause(ctx))
		case <-time.After(unstablePause):
		}
	}
}

// follow checks the source at regular intervals. It loads the source when it has changed and two
// checks in a row agree: until then, a writer may be active.
//
// Content that cannot be served is reported once and loaded again only after it changes. There are
// two exceptions: content that could not be read and an index that cannot be trusted. For these
// follow tries again after growing pauses.
func (c *content) follow(ctx context.Context, loaded string) {
	ticks := time.NewTicker(cmp.Or(c.interval, c.renewAfter, defaultRenewPause))
	defer ticks.Stop()
	f := &followState{content: c, loaded: loaded, last: loaded}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.reports:
			f.rebuild(ctx)
		case <-ticks.C:
			f.check(ctx)
		}
	}
}

// followState is the state of [content.follow].
type followState struct {
	*content

	// loaded is the fingerprint of the last loaded content. last is the fingerprint at the previous check.
	loaded, last string
	// unstable is how many loads in a row found that the source had changed.
	unstable int
	// distrusted is set while the cache must not be used: until a load without the cache succeeds.
	distrusted bool
	// again is set if the last load failed and another attempt may succeed.
	again bool
	// pause is the pause before the next load of an unchanged source.
	pause backoff
	// reported is the text of the last logged failure.
	reported string
}

// rebuild rebuilds an index that cannot be trusted, at once or after the current pause. If the
// source cannot rebuild the index, it reports the damage.
func (f *followState) rebuild(ctx context.Context) {
	err := f.damage()
	if err == nil {
		return // the index is no longer served
	}
	if source, ok := f.source.(prebuilt); ok {
		f.reportDamage(ctx, source.Damaged(err))
		return
	}
	f.logger.ErrorContext(ctx, "The index cannot be trusted, rebuilding it", "error", err)
	f.distrusted = true
	if now := f.fingerprint(ctx); now == f.last && f.pause.left == 0 {
		f.attempt(ctx, now)
	}
}

// check loads the content if there is a reason to. Without an interval it checks the source only
// while the served index cannot be trusted.
func (f *followState) check(ctx context.Context) {
	over := f.pause.over()
	if f.interval == 0 && !f.distrusted {
		return
	}
	now := f.fingerprint(ctx)
	stable := now == f.last
	f.last = now
	if stable && (now != f.loaded || over && (f.again || f.distrusted)) {
		f.attempt(ctx, now)
	}
}

// attempt loads the content with the fingerprint now and records the result.
func (f *followState) attempt(ctx context.Context, now string) {
	if now != f.loaded {
		f.pause, f.reported = backoff{}, ""
	}
	fresh := f.distrusted
	err := f.load(ctx, now, fresh)
	if ctx.Err() != nil {
		return
	}
	f.distrusted = fresh && err != nil
	f.again = isTransient(err)
	if errors.Is(err, errUnstable) {
		f.unstable++
		if f.unstable%maxUnstable != 0 {
			f.pause.left = 1
			return
		}
	}
	f.loaded, f.unstable = now, 0
	if fresh || f.again {
		f.pause.lengthen()
	} else {
		f.pause = backoff{}
	}
	f.report(ctx, err, f.again || f.distrusted)
}

// isTransient reports whether another attempt may succeed although the source has not changed.
func isTransient(err error) bool {
	return errors.Is(err, errUnstable) ||
		slices.ContainsFunc(bundles.AsProblems(err), func(p bundles.Problem) bool { return p.Unreadable })
}

// backoff counts the intervals until the next attempt. The zero value has none.
type backoff struct {
	pause, left int
}

// lengthen begins a pause that is longer than the previous one.
func (b *backoff) lengthen() {
	b.pause = min(max(1, 2*b.pause), maxBackoff)
	b.left = b.pause
}

// over counts an interval and reports whether the pause has ended.
func (b *backoff) over() bool {
	b.left = max(0, b.left-1)
	return b.left == 0
}

func (c *content) fingerprint(ctx context.Context) string {
	text, err := c.source.Fingerprint()
	if err != nil {
		c.logger.DebugContext(ctx, "Cannot look at the source", "error", err)
		// An error is a state of the source, too.
		return "error: " + err.Error()
	}
	return text
}

// load replaces the served index, unless the fingerprint of the source is no longer before. Calls
// in progress finish on the old index.
func (c *content) load(ctx context.Context, before string, fresh bool) error {
	start, read := time.Now(), c.source.Load
	if c.beforeLoad != nil {
		c.beforeLoad()
	}
	if source, ok := c.source.(verifier); ok && fresh {
		read = source.LoadFresh
	}
	loaded, err := read(ctx)
	if ctx.Err() == nil && c.fingerprint(ctx) != before {
		c.logger.InfoContext(ctx, "The content changed while it was read, reading it again")
		return fmt.Errorf("loading catalog: %w", errUnstable)
	}
	if err != nil {
		c.metrics.failed(len(bundles.AsProblems(err)))
		if ctx.Err() == nil {
			c.announcer.Failed(err, time.Now())
		}
		return fmt.Errorf("loading catalog: %w", err)
	}
	c.serve(ctx, loaded, start)
	return nil
}

// serve makes loaded the served index. start is the time at which its load began.
func (c *content) serve(ctx context.Context, loaded *index.Index, start time.Time) {
	c.set(loaded)
	took, stats := time.Since(start), loaded.Stats()
	c.metrics.loaded(stats, took, time.Now())
	c.announcer.Loaded(loaded.Info(), time.Now())
	c.logger.InfoContext(ctx, "Loaded catalog", "packages", stats.Packages, "channels", stats.Channels,
		"bundles", stats.Bundles, "entries", stats.Entries, "bytes", stats.Bytes, "duration", took.String())
	if c.afterLoad != nil {
		c.afterLoad()
	}
}

// reportDamage reports an index that stays damaged. The server still serves its intact parts.
func (f *followState) reportDamage(ctx context.Context, err error) {
	f.metrics.problems.Set(float64(len(bundles.AsProblems(err))))
	f.announcer.Failed(err, time.Now())
	f.logProblems(ctx, err)
}

// report logs one line for each problem of content that is not served. It does not repeat the last
// logged failure.
func (f *followState) report(ctx context.Context, err error, again bool) {
	if err == nil {
		f.reported = ""
		return
	}
	if text := err.Error(); text == f.reported {
		return
	}
	f.reported = err.Error()
	f.logProblems(ctx, err)
	problems := len(bundles.AsProblems(err))
	if again {
		f.logger.ErrorContext(ctx, "Keeping the old content, trying again later", "problems", problems)
		return
	}
	f.logger.ErrorContext(ctx, "Keeping the old content until the files change again", "problems", problems)
}

func (c *content) logProblems(ctx context.Context, err error) {
	problems := bundles.AsProblems(err)
	for i := range problems {
		c.logger.ErrorContext(ctx, "Catalog problem", "problem", problems[i].String())
	}
}
