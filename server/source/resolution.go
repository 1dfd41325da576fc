package source

import (
	"sync"
	"time"
)

// pollTimeout limits how long the resolution of a tag blocks.
const pollTimeout = 5 * time.Second

// resolution records to which digest a reference was last resolved, and when. It is safe for concurrent
// use.
type resolution struct {
	// now replaces the clock in tests.
	now func() time.Time

	mu     sync.Mutex
	digest string
	at     time.Time
	// failing is true if the last resolution failed.
	failing bool
}

// last returns the last digest, and reports whether another resolution is due: there is no digest, or
// the last resolution is at least poll ago. With a poll of 0, it is not repeated.
func (r *resolution) last(poll time.Duration) (digest string, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.digest, r.digest == "" || poll > 0 && r.clock().Sub(r.at) >= poll
}

// succeeded records a digest. It returns the digest before, and reports whether the previous resolution
// failed.
func (r *resolution) succeeded(digest string) (before string, recovered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, recovered = r.digest, r.failing
	r.digest, r.at, r.failing = digest, r.clock(), false
	return before, recovered
}

// restore records the digest of an earlier process.
func (r *resolution) restore(digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.digest, r.at = digest, r.clock()
}

// failed records a failure. It reports whether it is the first of consecutive failures.
func (r *resolution) failed() (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.failing
	r.at, r.failing = r.clock(), true
	return first
}

func (r *resolution) clock() time.Time {
	if r.now != nil {
		return r.now()
	}
	return time.Now()
}
