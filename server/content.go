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

// content holds what is served and keeps it up to date.
type content struct {
	source   Source
	interval time.Duration
	logger   *slog.Logger
	metrics  *metrics
	current  atomic.Pointer[index.Index]
	// announcer tells clients what is served and what is wrong.
	announcer extension.Announcer
	// doubted is what was found wrong with the index that is served; nil for
	// nothing.
	doubted atomic.Pointer[doubt]
	// suspect is set when there is something new in doubted.
	suspect chan struct{}
	// renewAfter is the time between two attempts to make the index anew where
	// there is no interval; defaultRenewPause by default.
	renewAfter time.Duration
	// verifyAfter is when to compare what is served with what it was made of.
	verifyAfter time.Duration
	// onLoaded is called once, when there is something to serve.
	onLoaded func()
	// beforeLoad is called before each load; nil for nothing.
	beforeLoad func()
	// afterLoad is called after each load that succeeds; nil for nothing.
	afterLoad func()
	// reported is the text of the failure that was logged last.
	reported string
}

const (
	// maxRestless is how many loads in a row may find the source changed
	// meanwhile before that is reported.
	maxRestless = 20
	// restlessPause is between two attempts at the first load.
	restlessPause = 100 * time.Millisecond
	// maxBackoff is the largest number of intervals between two attempts to
	// read what could not be read.
	maxBackoff = 64
	// defaultRenewPause is between two attempts to make anew an index of a
	// source that is not followed.
	defaultRenewPause = 5 * time.Second
)

// errRestless is returned for a load during which the source changed: what was
// read may be half of the old and half of the new content.
var errRestless = errors.New("the content changed while it was read")

// run loads the content, which must succeed the first time, and then follows
// the source until ctx ends.
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

// warmer is a source that may know its content without reading it.
type warmer interface {
	// Warm returns the index of the content as it is, and the content's
	// fingerprint; nil when there is more to do.
	Warm(ctx context.Context) (x *index.Index, fingerprint string)
}

// verifier is a source that may have answered from a cache.
type verifier interface {
	// Verify tells whether an index is that of the content.
	Verify(ctx context.Context, x *index.Index) (bool, error)
	// LoadFresh loads the content without trusting what was kept of it.
	LoadFresh(ctx context.Context) (*index.Index, error)
}

// readyMade is a source of an index that somebody else has made: here it cannot
// be rebuilt.
type readyMade interface {
	// Damaged says where the index is that is damaged, and what to do about it.
	Damaged(err error) error
}

// verifyPause is how long a server serves before it looks closely at whether
// what was kept of the content is still the content: at the start there is
// something more urgent to do.
const verifyPause = 10 * time.Second

// verify compares once what is served with what it was made of. Where that
// cannot be read it tries again, ever more rarely.
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

// errOtherContent is what is wrong with an index that was verified in vain.
var errOtherContent = errors.New("the index is not what was made of the content")

// doubt is why an index cannot be trusted.
type doubt struct {
	index *index.Index
	err   error
}

// damaged is told of an index that turned out to be damaged. Any number of calls
// may find that: the first of an index counts.
func (c *content) damaged(x *index.Index, err error) {
	before := c.doubted.Load()
	known := before != nil && before.index == x
	if known || c.current.Load() != x || !c.doubted.CompareAndSwap(before, &doubt{x, err}) {
		return
	}
	select {
	case c.suspect <- struct{}{}:
	default: // it is going to be looked at
	}
}

// first loads the first content and returns its fingerprint. It tries again
// while the source changes.
func (c *content) first(ctx context.Context) (string, error) {
	source, looked := c.source.(warmer)
	if looked {
		start := time.Now()
		if x, seen := source.Warm(ctx); x != nil {
			c.serve(ctx, x, start)
			return seen, nil
		}
	}
	for attempt := 1; ; attempt++ {
		seen := c.fingerprint(ctx)
		// What was kept has been looked at already, and is of no use.
		err := c.load(ctx, seen, looked)
		if !errors.Is(err, errRestless) || attempt == maxRestless {
			return seen, err
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("loading catalog: %w", context.Cause(ctx))
		case <-time.After(restlessPause):
		}
	}
}

// follow looks at the source in regular intervals and loads it once it has
// changed and is at rest again: a source that still differs from the look
// before is being written. Content that cannot be served is reported once and
// not looked at again before it changes, unless it could not be read or what is
// served cannot be trusted: that is tried again, ever more rarely.
func (c *content) follow(ctx context.Context, loaded string) {
	ticks := time.NewTicker(cmp.Or(c.interval, c.renewAfter, defaultRenewPause))
	defer ticks.Stop()
	f := &following{content: c, loaded: loaded, last: loaded}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.suspect:
			f.suspicion(ctx)
		case <-ticks.C:
			f.look(ctx)
		}
	}
}

// following is how far following a source has come.
type following struct {
	*content

	// loaded is the fingerprint of what was loaded last, and last that of the
	// look before.
	loaded, last string
	// restless is how many loads in a row have found the source changed.
	restless int
	// distrusted tells that what was kept of the content must not be used any
	// more; it is so until the content has been loaded without.
	distrusted bool
	// again tells that the last load failed and that another may succeed.
	again bool
	// pause is before the next load of a source that has not changed.
	pause backoff
}

// suspicion rebuilds an index that cannot be trusted: at once, or when the
// pause is over that follows the last time. One that cannot be rebuilt is
// reported.
func (f *following) suspicion(ctx context.Context) {
	found := f.doubted.Load()
	if found == nil || found.index != f.current.Load() {
		return // it is not served any more
	}
	if source, ok := f.source.(readyMade); ok {
		f.reportDamage(ctx, source.Damaged(found.err))
		return
	}
	f.logger.ErrorContext(ctx, "The index cannot be trusted, rebuilding it", "error", found.err)
	f.distrusted = true
	if now := f.fingerprint(ctx); now == f.last && f.pause.left == 0 {
		f.attempt(ctx, now)
	}
}

// look loads the content if there is a reason to. A source without an interval
// is looked at only as long as what is served cannot be trusted.
func (f *following) look(ctx context.Context) {
	over := f.pause.over()
	if f.interval == 0 && !f.distrusted {
		return
	}
	now := f.fingerprint(ctx)
	atRest := now == f.last
	f.last = now
	if atRest && (now != f.loaded || over && (f.again || f.distrusted)) {
		f.attempt(ctx, now)
	}
}

// attempt loads the content that has a fingerprint, and notes how that ended.
func (f *following) attempt(ctx context.Context, now string) {
	if now != f.loaded {
		f.pause, f.reported = backoff{}, ""
	}
	fresh := f.distrusted
	err := f.load(ctx, now, fresh)
	if ctx.Err() != nil {
		return
	}
	f.distrusted = fresh && err != nil
	f.again = mayPass(err)
	if errors.Is(err, errRestless) {
		f.restless++
		if f.restless%maxRestless != 0 {
			f.pause.left = 1
			return
		}
	}
	f.loaded, f.restless = now, 0
	if fresh || f.again {
		f.pause.lengthen()
	} else {
		f.pause = backoff{}
	}
	f.report(ctx, err, f.again || f.distrusted)
}

// mayPass tells whether another attempt may succeed although the source has not
// changed.
func mayPass(err error) bool {
	return errors.Is(err, errRestless) ||
		slices.ContainsFunc(bundles.AsProblems(err), func(p bundles.Problem) bool { return p.Unreadable })
}

// backoff counts intervals until the next attempt. The zero value has none to
// wait for.
type backoff struct {
	pause, left int
}

// lengthen begins a pause, longer than the one before.
func (b *backoff) lengthen() {
	b.pause = min(max(1, 2*b.pause), maxBackoff)
	b.left = b.pause
}

// over counts an interval and tells whether it was the last.
func (b *backoff) over() bool {
	b.left = max(0, b.left-1)
	return b.left == 0
}

func (c *content) fingerprint(ctx context.Context) string {
	text, err := c.source.Fingerprint()
	if err != nil {
		c.logger.DebugContext(ctx, "Cannot look at the source", "error", err)
		// An error is a state of the source like any other.
		return "error: " + err.Error()
	}
	return text
}

// load replaces what is served, unless the source does not have the
// fingerprint any more that it had before. Calls under way finish on what they
// began with.
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
		return fmt.Errorf("loading catalog: %w", errRestless)
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

// serve answers from now on from what has been loaded since some time.
func (c *content) serve(ctx context.Context, loaded *index.Index, start time.Time) {
	c.current.Store(loaded)
	c.doubted.Store(nil)
	took, stats := time.Since(start), loaded.Stats()
	c.metrics.loaded(stats, took, time.Now())
	c.announcer.Loaded(loaded.Info(), time.Now())
	c.logger.InfoContext(ctx, "Loaded catalog", "packages", stats.Packages, "channels", stats.Channels,
		"bundles", stats.Bundles, "entries", stats.Entries, "bytes", stats.Bytes, "duration", took.String())
	if c.afterLoad != nil {
		c.afterLoad()
	}
}

// reportDamage tells of an index that stays damaged. What is intact of it is
// served still.
func (c *content) reportDamage(ctx context.Context, err error) {
	c.metrics.problems.Set(float64(len(bundles.AsProblems(err))))
	c.announcer.Failed(err, time.Now())
	c.logProblems(ctx, err)
}

// report logs one line for each problem of a content that is not served. What
// it has just logged it does not log again.
func (c *content) report(ctx context.Context, err error, again bool) {
	if err == nil {
		c.reported = ""
		return
	}
	if text := err.Error(); text == c.reported {
		return
	}
	c.reported = err.Error()
	c.logProblems(ctx, err)
	problems := len(bundles.AsProblems(err))
	if again {
		c.logger.ErrorContext(ctx, "Keeping the old content, trying again later", "problems", problems)
		return
	}
	c.logger.ErrorContext(ctx, "Keeping the old content until the files change again", "problems", problems)
}

func (c *content) logProblems(ctx context.Context, err error) {
	problems := bundles.AsProblems(err)
	for i := range problems {
		c.logger.ErrorContext(ctx, "Catalog problem", "problem", problems[i].String())
	}
}
