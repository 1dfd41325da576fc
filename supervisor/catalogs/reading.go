package catalogs

import (
	"context"
	"time"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

const (
	// retryContent is the first pause after a failed reading. A catalog that has just started
	// refuses calls until it is ready. The pause doubles each time, up to the refresh interval.
	retryContent = time.Second
	// steady is how long a watch must last for the next one to start without back-off.
	steady = 10 * time.Second
)

// reading schedules visits to the catalog. A visit starts after the set of serving replicas or
// their rollout changes, and periodically.
type reading struct {
	ended chan outcome
	// cancel ends the current visit; nil if there is none.
	cancel context.CancelFunc
	timer  *time.Timer
	// joined and revision are the values of the Summary at the start of the visit. checked is the
	// last Joined that the visit was notified of.
	joined, checked int
	revision        string
	overdue         bool
	// pause is the pause after the last failed visit. It is zero after a success, and after a
	// replica begins or ceases to serve.
	pause time.Duration
}

// outcome is the result of a visit.
type outcome struct {
	// good is true for a success. again is the pause until the next visit after a success.
	good  bool
	again time.Duration
}

// isDue reports whether a visit is to start.
func (r *reading) isDue(now replicas.Summary) bool {
	return r.cancel == nil && (r.timer == nil || r.overdue || r.joined != now.Joined || r.hasMoved(now))
}

// hasMoved reports whether calls now go to another rollout.
func (r *reading) hasMoved(now replicas.Summary) bool {
	return now.Revision != "" && r.revision != now.Revision
}

// begin records the start of a visit and returns its context.
func (r *reading) begin(ctx context.Context, now replicas.Summary) context.Context {
	if r.joined != now.Joined {
		r.pause = 0
	}
	r.joined, r.checked, r.revision, r.overdue = now.Joined, now.Joined, now.Revision, false
	ctx, r.cancel = context.WithCancel(ctx)
	return ctx
}

// follow passes changes of the replicas to the current visit. It cancels the visit if calls go to
// another rollout, and triggers a check if a replica begins or ceases to serve.
func (r *reading) follow(now replicas.Summary, checks chan<- struct{}) {
	switch {
	case r.cancel == nil:
	case r.hasMoved(now):
		r.cancel()
	case r.checked != now.Joined:
		r.checked = now.Joined
		select {
		case checks <- struct{}{}:
		default:
		}
	}
}

// done records the result of a visit and sets the timer for the next one. After failures, the pause
// grows.
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

// stop cancels the current visit and waits for its end.
func (r *reading) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.ended
	}
	if r.timer != nil {
		r.timer.Stop()
	}
}
