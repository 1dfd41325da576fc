package installplan

import (
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Pauses between tries. Those of a failed plan are longer, as its cause needs a fix by a user.
const (
	firstPause       = time.Second
	maxPause         = 30 * time.Second
	firstPauseFailed = 10 * time.Second
	maxPauseFailed   = 5 * time.Minute
)

// maxPauseUnanswered is the longest pause after the API server returned no answer, or a temporary
// error. Such failures end without a change of the plan.
const maxPauseUnanswered = 5 * time.Second

// pauseRoused is the pause before a failed plan is checked once more, after an event did not make
// it continue at once.
const pauseRoused = 2 * time.Second

// longest returns the longest pause after an error.
func longest(err error) time.Duration {
	var answer apierrors.APIStatus
	if passing(err) || !errors.As(err, &answer) && !lasting(err) {
		return maxPauseUnanswered
	}
	return maxPause
}

// pause returns how long to wait after a number of consecutive failures. The pause doubles with
// each failure, up to most. It then varies by up to a fifth, so that plans that failed together are
// not retried together. chance is between 0 and 1.
func pause(failures int, first, most time.Duration, chance float64) time.Duration {
	const steps = 16
	length := min(first<<min(max(failures-1, 0), steps), most)
	return length + time.Duration((chance-0.5)*0.4*float64(length))
}

// postpone records a failed try and returns the pause after it.
func (r *record) postpone(now time.Time, most time.Duration) time.Duration {
	r.failures++
	return r.wait(now, pause(r.failures, firstPause, most, rand.Float64())) //nolint:gosec // it only spreads tries
}

// gaveUp records at which step a plan failed. A plan that got further than before begins with short
// pauses again.
func (r *record) gaveUp(step int) {
	if step > r.furthest {
		r.furthest, r.rests = step, 0
	}
}

// rest returns the pause until a failed plan is checked.
func (r *record) rest(now time.Time) time.Duration {
	r.rests++
	return r.wait(now, pause(r.rests, firstPauseFailed, maxPauseFailed, rand.Float64())) //nolint:gosec // it only spreads tries
}

func (r *record) wait(now time.Time, length time.Duration) time.Duration {
	r.due = now.Add(length)
	return length
}
