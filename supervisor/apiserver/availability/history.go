package availability

import "time"

const (
	// firstRepeat is the time after which a cause is logged again, and longestRepeat the longest such interval. Each
	// interval is twice as long as the previous one.
	firstRepeat   = 30 * time.Second
	longestRepeat = 30 * time.Minute
)

// history records outages.
type history struct {
	// started is the start of the current outage; zero without an outage.
	started time.Time
	// last is the time of the last failed request, or else the start of the history.
	last time.Time
	// lastCause is the cause of that failure.
	lastCause string
	// logged holds the causes that are in the log.
	logged map[string]logged
	// endUnlogged reports whether the log has a cause of an outage, but not its end.
	endUnlogged bool
}

// logged is when a cause was last logged, and the time until it is logged again.
type logged struct {
	at    time.Time
	pause time.Duration
}

// fail records a failed request, and reports whether its cause must be logged.
func (h *history) fail(cause string, now time.Time) bool {
	if now.Sub(h.last) > longestRepeat {
		clear(h.logged)
	}
	if h.started.IsZero() || now.Sub(h.last) >= outageTimeout {
		h.started = now
	}
	h.last, h.lastCause = now, cause
	before, known := h.logged[cause]
	if known && now.Sub(before.at) < before.pause {
		return false
	}
	if h.logged == nil {
		h.logged = map[string]logged{}
	}
	h.logged[cause] = logged{at: now, pause: min(max(2*before.pause, firstRepeat), longestRepeat)}
	h.endUnlogged = true
	return true
}

// answer records an answered request. It returns the duration of the outage that it ends, and reports whether
// that must be logged.
func (h *history) answer(now time.Time) (time.Duration, bool) {
	if h.started.IsZero() {
		return 0, false
	}
	waited, log := now.Sub(h.started), h.endUnlogged
	h.started, h.endUnlogged = time.Time{}, false
	return waited, log
}

// cause returns the cause of the current outage; empty without an outage.
func (h *history) cause(now time.Time) string {
	if h.started.IsZero() || now.Sub(h.last) >= outageTimeout {
		return ""
	}
	return h.lastCause
}
