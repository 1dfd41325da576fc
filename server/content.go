package server

import (
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
	// suspect is set when the content has to be made anew although the source
	// has not changed.
	suspect chan struct{}
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

// verifyPause is how long a server serves before it looks closely at whether
// what was kept of the content is still the content: at the start there is
// something more urgent to do.
const verifyPause = 10 * time.Second

// verify compares once what is served with what it was made of.
func (c *content) verify(ctx context.Context) {
	source, ok := c.source.(verifier)
	if !ok {
		return
	}
	timer := time.NewTimer(c.verifyAfter)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	same, err := source.Verify(ctx, c.current.Load())
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.logger.WarnContext(ctx, "Cannot compare the index with the content", "error", err)
	case !same:
		c.logger.WarnContext(ctx, "The index is not that of the content, making it anew")
		c.distrust()
	}
}

// damaged is told of an index that turned out to be damaged.
func (c *content) damaged(x *index.Index, err error) {
	if c.current.Load() == x {
		c.logger.Error("The index is damaged, making it anew", "error", err)
		c.distrust()
	}
}

// distrust has the content made anew.
func (c *content) distrust() {
	select {
	case c.suspect <- struct{}{}:
	default: // it is going to be
	}
}

// first loads the first content and returns its fingerprint. It tries again
// while the source changes.
func (c *content) first(ctx context.Context) (string, error) {
	if source, ok := c.source.(warmer); ok {
		start := time.Now()
		if x, seen := source.Warm(ctx); x != nil {
			c.serve(ctx, x, start)
			return seen, nil
		}
	}
	for attempt := 1; ; attempt++ {
		seen := c.fingerprint(ctx)
		err := c.load(ctx, seen, false)
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
// not looked at again before it changes, unless it could not be read: that is
// tried again, ever more rarely.
func (c *content) follow(ctx context.Context, loaded string) {
	ticks, stop := c.ticks()
	defer stop()
	last, restless := loaded, 0
	var retry backoff
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.suspect:
			c.report(ctx, c.load(ctx, c.fingerprint(ctx), true))
			continue
		case <-ticks:
		}
		now := c.fingerprint(ctx)
		atRest := now == last
		last = now
		if !atRest || now == loaded && !retry.due() {
			continue
		}
		if now != loaded {
			retry, c.reported = backoff{}, ""
		}
		err := c.load(ctx, now, false)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errRestless) {
			restless++
			if restless%maxRestless != 0 {
				retry.left = 1
				continue
			}
		}
		loaded, restless = now, 0
		retry.after(err)
		c.report(ctx, err)
	}
}

// ticks says when to look at the source; never without an interval.
func (c *content) ticks() (ticks <-chan time.Time, stop func()) {
	if c.interval == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(c.interval)
	return ticker.C, ticker.Stop
}

// backoff says when to try again what could not be read, in intervals. The
// zero value never does.
type backoff struct {
	pause, left int
}

// after notes how an attempt ended.
func (b *backoff) after(err error) {
	retry := errors.Is(err, errRestless) || slices.ContainsFunc(bundles.AsProblems(err), func(p bundles.Problem) bool { return p.Unreadable })
	if !retry {
		*b = backoff{}
		return
	}
	b.pause = min(max(1, 2*b.pause), maxBackoff)
	b.left = b.pause
}

// due counts an interval and tells whether to try again.
func (b *backoff) due() bool {
	if b.left > 0 {
		b.left--
		return b.left == 0
	}
	return false
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
	took, stats := time.Since(start), loaded.Stats()
	c.metrics.loaded(stats, took, time.Now())
	c.announcer.Loaded(loaded.Info(), time.Now())
	c.logger.InfoContext(ctx, "Loaded catalog", "packages", stats.Packages, "channels", stats.Channels,
		"bundles", stats.Bundles, "entries", stats.Entries, "bytes", stats.Bytes, "duration", took.String())
	if c.afterLoad != nil {
		c.afterLoad()
	}
}

// report logs one line for each problem of a content that is not served. What
// it has just logged it does not log again.
func (c *content) report(ctx context.Context, err error) {
	if err == nil {
		c.reported = ""
		return
	}
	if text := err.Error(); text == c.reported {
		return
	}
	c.reported = err.Error()
	problems := bundles.AsProblems(err)
	for i := range problems {
		c.logger.ErrorContext(ctx, "Catalog problem", "problem", problems[i].String())
	}
	c.logger.ErrorContext(ctx, "Keeping the old content until the files change again", "problems", len(problems))
}
