package bundleimage

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/chandlery/chandlery/bundles/image"
)

const (
	// freshTime is how long it counts that a registry let somebody in. Then it is
	// asked again, and its answer counts on until graceTime meanwhile.
	freshTime = 5 * time.Minute
	graceTime = 10 * time.Minute
	// tagTime is how often a tag is looked at that stands for an image that is of
	// no use.
	tagTime = 5 * time.Minute
	// forgetTime is how long a request is remembered that nobody makes.
	forgetTime = time.Hour
)

// Pauses after an attempt failed.
const (
	firstPause = 5 * time.Second
	maxPause   = 5 * time.Minute
	// restTime is how long those who wait for content are given the same error.
	restTime = 2 * time.Second
)

// entry is what is known of one request.
type entry struct {
	// namespaces are told of news.
	namespaces map[string]bool
	// asked is when somebody asked last.
	asked time.Time

	// running is closed when the present attempt ends, nil when there is none.
	running chan struct{}
	began   time.Time
	// pull is what the present attempt waits for.
	pull *pull

	// digest is what the request may have since grantedAt.
	digest    string
	grantedAt time.Time

	// attempts that failed in a row, and the last of them.
	attempts          int
	err               error
	failedAt, retryAt time.Time
}

// entry finds or makes the entry of a request.
func (u *Unpacker) entry(r *Request, now time.Time) *entry {
	key := r.key()
	e := u.entries[key]
	if e == nil {
		for old, other := range u.entries {
			if other.running == nil && now.Sub(other.asked) > forgetTime {
				delete(u.entries, old)
			}
		}
		e = &entry{namespaces: map[string]bool{}}
		u.entries[key] = e
	}
	e.asked = now
	return e
}

// granted says whether the digest may be handed out.
func (e *entry) granted(now time.Time) bool {
	return e.digest != "" && now.Sub(e.grantedAt) < graceTime
}

// due says whether an attempt is to begin.
func (e *entry) due(now time.Time) bool {
	switch {
	case e.running != nil:
		return false
	case e.err != nil:
		return !e.retryAt.IsZero() && !now.Before(e.retryAt)
	default:
		return e.digest == "" || now.Sub(e.grantedAt) >= freshTime
	}
}

// rests says whether it is too early to try again even for those who wait.
func (e *entry) rests(now time.Time) bool {
	return e.err != nil && (e.retryAt.IsZero() || now.Sub(e.failedAt) < restTime)
}

func (e *entry) state(now time.Time) State {
	if e.granted(now) {
		return State{Ready: true, Digest: e.digest}
	}
	s := State{Attempts: e.attempts, Err: e.err, FailedAt: e.failedAt, RetryAt: e.retryAt}
	if e.running != nil {
		s.Began = e.began
	}
	if e.pull != nil {
		s.Done, s.Total = e.pull.done, e.pull.total
	}
	return s
}

// succeed takes note that the request may have what has a digest.
func (e *entry) succeed(digest string, now time.Time) {
	e.digest, e.grantedAt = digest, now
	e.attempts, e.err, e.failedAt, e.retryAt = 0, nil, time.Time{}, time.Time{}
}

// fail takes note of an error. What cannot pass is tried again only where the
// reference may come to stand for something else.
func (e *entry) fail(err error, interval time.Duration, now time.Time) {
	known, isImage := errors.AsType[*image.Error](err)
	// Until the registry says so, what it allowed is still allowed.
	if isImage && known.Reason != image.ReasonUnreachable && known.Reason != image.ReasonLocal {
		e.digest, e.grantedAt = "", time.Time{}
	}
	if !isImage || known.MayPass() {
		e.attempts++
		e.err, e.failedAt, e.retryAt = err, now, now.Add(jitter(max(pause(e.attempts), interval)))
		return
	}
	// That a tag still stands for the same is no other failure.
	if e.err == nil || e.err.Error() != err.Error() {
		e.attempts++
		e.err, e.failedAt = err, now
	}
	e.retryAt = time.Time{}
	if image.IsReference(known.Reference) && !image.IsDigest(known.Reference) {
		e.retryAt = now.Add(jitter(max(tagTime, interval)))
	}
}

// pause doubles with each failure.
func pause(failures int) time.Duration {
	return min(firstPause<<min(max(failures-1, 0), 16), maxPause)
}

// jitter makes a pause up to a fifth longer: those who failed together must not
// come back together.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/5+1) //nolint:gosec // nothing depends on it being hard to guess
}
