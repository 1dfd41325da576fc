package installplan

import (
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Pauses between two tries. Those of a plan that has failed are longer: it waits for
// somebody to fix something.
const (
	firstPause       = time.Second
	maxPause         = 30 * time.Second
	firstPauseFailed = 10 * time.Second
	maxPauseFailed   = 5 * time.Minute
)

// maxPauseUnanswered is the longest pause where the API server gave no answer, or
// none to the matter: that passes without anybody doing anything to the plan.
const maxPauseUnanswered = 5 * time.Second

// pauseRoused is how soon a plan that was given up is looked at once more after
// something happened that did not have it go on at once.
const pauseRoused = 2 * time.Second

// longest is the longest pause after an error.
func longest(err error) time.Duration {
	var answer apierrors.APIStatus
	if passing(err) || !errors.As(err, &answer) && !lasting(err) {
		return maxPauseUnanswered
	}
	return maxPause
}

// pause is how long to wait after a number of failures one after another: it doubles
// with each, and is up to a fifth longer or shorter, so that many plans that failed
// at once do not come back at once. chance is between 0 and 1.
func pause(failures int, first, most time.Duration, chance float64) time.Duration {
	const steps = 16
	length := min(first<<min(max(failures-1, 0), steps), most)
	return length + time.Duration((chance-0.5)*0.4*float64(length))
}

// postpone records a try that failed and gives the pause after it.
func (r *record) postpone(now time.Time, most time.Duration) time.Duration {
	r.failures++
	return r.wait(now, pause(r.failures, firstPause, most, rand.Float64())) //nolint:gosec // it only spreads tries
}

// gaveUp records at which step a plan was given up. One that got further than ever
// before begins with short pauses again.
func (r *record) gaveUp(step int) {
	if step > r.furthest {
		r.furthest, r.rests = step, 0
	}
}

// rest gives the pause until a plan that was given up is looked at.
func (r *record) rest(now time.Time) time.Duration {
	r.rests++
	return r.wait(now, pause(r.rests, firstPauseFailed, maxPauseFailed, rand.Float64())) //nolint:gosec // it only spreads tries
}

func (r *record) wait(now time.Time, length time.Duration) time.Duration {
	r.due = now.Add(length)
	return length
}
