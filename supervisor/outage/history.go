package outage

import "time"

const (
	// firstRepeat is after how long a cause is logged again, and longestRepeat the longest such
	// interval. Each is twice as long as the one before.
	firstRepeat   = 30 * time.Second
	longestRepeat = 30 * time.Minute
)

// history is what is known of outages.
type history struct {
	// begun is when the present outage began; zero without an outage.
	begun time.Time
	// last is when a request last failed, or when the history begins.
	last time.Time
	// latest is the cause of that failure.
	latest string
	// logged has the causes that are in the log.
	logged map[string]logged
	// unfinished reports whether the log has a cause of an outage, and not its end.
	unfinished bool
}

// logged is when a cause was last logged, and how long it is not logged again.
type logged struct {
	at    time.Time
	pause time.Duration
}

// fail records a failed request, and reports whether its cause is to be logged.
func (h *history) fail(cause string, now time.Time) bool {
	if now.Sub(h.last) > longestRepeat {
		clear(h.logged)
	}
	if h.begun.IsZero() || now.Sub(h.last) >= current {
		h.begun = now
	}
	h.last, h.latest = now, cause
	before, known := h.logged[cause]
	if known && now.Sub(before.at) < before.pause {
		return false
	}
	if h.logged == nil {
		h.logged = map[string]logged{}
	}
	h.logged[cause] = logged{at: now, pause: min(max(2*before.pause, firstRepeat), longestRepeat)}
	h.unfinished = true
	return true
}

// answer records a request that was answered. It returns how long the outage was that ends with
// it, and reports whether that is to be logged.
func (h *history) answer(now time.Time) (time.Duration, bool) {
	if h.begun.IsZero() {
		return 0, false
	}
	waited, log := now.Sub(h.begun), h.unfinished
	h.begun, h.unfinished = time.Time{}, false
	return waited, log
}

// cause returns the cause of the present outage; empty without an outage.
func (h *history) cause(now time.Time) string {
	if h.begun.IsZero() || now.Sub(h.last) >= current {
		return ""
	}
	return h.latest
}
