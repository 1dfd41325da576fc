package installplan

import (
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// Pauses between tries. Those of a failed plan are longer, as its cause needs a fix by a user.
const (
	firstPause       = time.Second
	maxPause         = 30 * time.Second
	firstPauseFailed = 10 * time.Second
	maxPauseFailed   = 5 * time.Minute
)

// maxPauseUnanswered is the longest pause after the API server returned no answer, or a temporary
// error, and while an owner is missing. Such failures end without a change of the plan.
const maxPauseUnanswered = 5 * time.Second

// pauseTriggered is the pause before a failed plan is checked once more, after an event did not make
// it continue at once.
const pauseTriggered = 2 * time.Second

// backoff holds the pauses of one plan.
type backoff struct {
	// failures is the number of consecutive failed tries.
	failures int
	// due is the time of the next try; zero for no pause.
	due time.Time
	// windows holds the steps, by index, that have had their retry window in the present phase.
	windows map[int]bool
	// checks is the number of pauses since the plan failed at the step furthest. It counts on while
	// the plan gets no further.
	checks, furthest int
}

// reset begins with short pauses again.
func (b *backoff) reset() {
	b.checks = 0
	b.resume()
}

// resume ends the pause, and begins with short pauses between tries again.
func (b *backoff) resume() { b.failures, b.due = 0, time.Time{} }

// enterPhase ends the pauses and retry windows of the last phase.
func (b *backoff) enterPhase() {
	b.windows = nil
	b.resume()
}

// fail records a failed try and returns the pause after it.
func (b *backoff) fail(now time.Time, most time.Duration) time.Duration {
	b.failures++
	return b.pause(now, pause(b.failures, firstPause, most, rand.Float64())) //nolint:gosec // it only spreads tries
}

// recordFailedStep records at which step a plan failed. A plan that got further than before begins with short
// pauses again.
func (b *backoff) recordFailedStep(step int) {
	if step > b.furthest {
		b.furthest, b.checks = step, 0
	}
}

// nextCheck returns the pause until a failed plan is checked.
func (b *backoff) nextCheck(now time.Time) time.Duration {
	b.checks++
	return b.pause(now, pause(b.checks, firstPauseFailed, maxPauseFailed, rand.Float64())) //nolint:gosec // it only spreads tries
}

// pause records and returns a pause.
func (b *backoff) pause(now time.Time, length time.Duration) time.Duration {
	b.due = now.Add(length)
	return length
}

// openWindow records that a step failed, and reports whether its retry window begins.
func (b *backoff) openWindow(step int) bool {
	if b.windows[step] {
		return false
	}
	if b.windows == nil {
		b.windows = map[int]bool{}
	}
	b.windows[step] = true
	return true
}

// maxPauseAfter returns the longest pause after an error.
func maxPauseAfter(err error) time.Duration {
	var answer apierrors.APIStatus
	if isTransient(err) || errors.Is(err, errOwnerMissing) || !errors.As(err, &answer) && !isLasting(err) {
		return maxPauseUnanswered
	}
	return maxPause
}

// pause returns how long to wait after a number of consecutive failures. The pause doubles with
// each failure, up to most. It then varies by up to a fifth, so that plans that failed together are
// not retried together. chance is between 0 and 1.
func pause(failures int, first, most time.Duration, chance float64) time.Duration {
	length := apply.Backoff{First: first, Max: most}.After(failures)
	return length + time.Duration((chance-0.5)*0.4*float64(length))
}
