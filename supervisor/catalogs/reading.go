package catalogs

import (
	"context"
	"time"

	"github.com/chandlery/chandlery/supervisor/replicas"
)

const (
	// retryContent is how soon content is read again that could not be read: a
	// catalog that has just started refuses calls until it is ready. The pause
	// doubles each time, up to the interval in which catalogs are asked anyway.
	retryContent = time.Second
	// steady is how long a replica has to have been listened to for the next one to
	// be listened to at once.
	steady = 10 * time.Second
)

// reading knows when the content is asked for: when another replica serves, or
// those of another roll-out do, than when it was asked for last, and after some
// time.
type reading struct {
	ended chan outcome
	// cancel ends a reading that is under way; nil when none is.
	cancel context.CancelFunc
	timer  *time.Timer
	// joined and revision are of the Summary when it was begun; nudged is the
	// number of joined that it was told of since.
	joined, nudged int
	revision       string
	overdue        bool
	// pause is the one after the last reading that failed; zero after one that
	// went well, or when another replica has begun or ceased to serve since.
	pause time.Duration
}

// outcome is how a reading went.
type outcome struct {
	// good says that it went well, and again is the pause until the next one then.
	good  bool
	again time.Duration
}

func (r *reading) due(now replicas.Summary) bool {
	return r.cancel == nil && (r.timer == nil || r.overdue || r.joined != now.Joined || r.moved(now))
}

// moved says whether calls are led to another roll-out by now.
func (r *reading) moved(now replicas.Summary) bool {
	return now.Revision != "" && r.revision != now.Revision
}

// begin notes that the content is being asked for.
func (r *reading) begin(ctx context.Context, now replicas.Summary) context.Context {
	if r.joined != now.Joined {
		r.pause = 0
	}
	r.joined, r.nudged, r.revision, r.overdue = now.Joined, now.Joined, now.Revision, false
	ctx, r.cancel = context.WithCancel(ctx)
	return ctx
}

// follow tells a reading that is under way of news of the replicas: it moves to
// those of another roll-out, and has a look when one began or ceased to serve.
func (r *reading) follow(now replicas.Summary, nudges chan<- struct{}) {
	switch {
	case r.cancel == nil:
	case r.moved(now):
		r.cancel()
	case r.nudged != now.Joined:
		r.nudged = now.Joined
		select {
		case nudges <- struct{}{}:
		default:
		}
	}
}

// done notes how a reading went: what went well is done again after a time, what
// did not, soon, and later each time.
func (r *reading) done(o outcome, refresh time.Duration) {
	wait := o.again
	if o.good {
		r.pause = 0
	} else {
		r.pause = min(max(retryContent, 2*r.pause), max(retryContent, refresh))
		wait = r.pause
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.cancel != nil {
		r.cancel()
	}
	r.cancel, r.timer = nil, time.NewTimer(wait)
}

func (r *reading) again() <-chan time.Time {
	if r.timer == nil {
		return nil
	}
	return r.timer.C
}

// stop ends a reading that is under way, and waits for that.
func (r *reading) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.ended
	}
	if r.timer != nil {
		r.timer.Stop()
	}
}
