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

// sessionSchedule schedules sessions to the catalog. A session starts after the set of serving replicas or
// their rollout changes, and periodically.
type sessionSchedule struct {
	ended chan sessionResult
	// cancel ends the current session; nil if there is none.
	cancel context.CancelFunc
	timer  *time.Timer
	// epoch and revision are the values of the Summary at the start of the session. checked is the
	// last Epoch that the session was notified of.
	epoch, checked int
	revision       string
	overdue        bool
	// pause is the pause after the last failed session. It is zero after a success, and after a
	// replica begins or ceases to serve.
	pause time.Duration
}

// sessionResult is the result of a session.
type sessionResult struct {
	// ok is true for a success. next is the pause until the next session after a success.
	ok   bool
	next time.Duration
}

// isDue reports whether a session is to start.
func (s *sessionSchedule) isDue(now replicas.Summary) bool {
	return s.cancel == nil && (s.timer == nil || s.overdue || s.epoch != now.Epoch || s.revisionChanged(now))
}

// revisionChanged reports whether calls now go to another rollout.
func (s *sessionSchedule) revisionChanged(now replicas.Summary) bool {
	return now.Revision != "" && s.revision != now.Revision
}

// start records the start of a session and returns its context.
func (s *sessionSchedule) start(ctx context.Context, now replicas.Summary) context.Context {
	if s.epoch != now.Epoch {
		s.pause = 0
	}
	s.epoch, s.checked, s.revision, s.overdue = now.Epoch, now.Epoch, now.Revision, false
	ctx, s.cancel = context.WithCancel(ctx)
	return ctx
}

// update passes changes of the replicas to the current session. It cancels the session if calls go to
// another rollout, and triggers a check if a replica begins or ceases to serve.
func (s *sessionSchedule) update(now replicas.Summary, checks chan<- struct{}) {
	switch {
	case s.cancel == nil:
	case s.revisionChanged(now):
		s.cancel()
	case s.checked != now.Epoch:
		s.checked = now.Epoch
		select {
		case checks <- struct{}{}:
		default:
		}
	}
}

// finish records the result of a session and sets the timer for the next one. After failures, the pause
// grows.
func (s *sessionSchedule) finish(o sessionResult, refresh time.Duration) {
	wait := o.next
	if o.ok {
		s.pause = 0
	} else {
		s.pause = min(max(retryContent, 2*s.pause), max(retryContent, refresh))
		wait = s.pause
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.cancel != nil {
		s.cancel()
	}
	s.cancel, s.timer = nil, time.NewTimer(wait)
}

func (s *sessionSchedule) timerChan() <-chan time.Time {
	if s.timer == nil {
		return nil
	}
	return s.timer.C
}

// stop cancels the current session and waits for its end.
func (s *sessionSchedule) stop() {
	if s.cancel != nil {
		s.cancel()
		<-s.ended
	}
	if s.timer != nil {
		s.timer.Stop()
	}
}
