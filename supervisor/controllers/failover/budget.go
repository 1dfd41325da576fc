package failover

import "time"

// Budget bounds how fast pods are touched. Its zero value is a full one.
type Budget struct {
	// Marks holds the tokens for marks, which are urgent and must not wait for
	// deletions, Deletions those for these, and Slow those for deletions in a zone
	// most of whose nodes are not ready.
	Marks, Deletions, Slow Bucket
}

// Bucket holds tokens; it is filled at a rate up to a size. Its zero value is
// full.
type Bucket struct {
	Tokens float64
	// Filled is up to when the tokens count.
	Filled time.Time
}

// fill puts in what has come since it was filled last.
func (b *Bucket) fill(now time.Time, limits Limits) {
	size := float64(limits.Burst)
	switch elapsed := now.Sub(b.Filled); {
	case b.Filled.IsZero():
		b.Tokens, b.Filled = size, now
	case elapsed > 0:
		b.Tokens, b.Filled = min(size, b.Tokens+elapsed.Seconds()*limits.Rate), now
	}
}

// take takes a token; when there is none, wait is how long until there is.
func (b *Bucket) take(limits Limits) (wait time.Duration, ok bool) {
	if b.Tokens >= 1 {
		b.Tokens--
		return 0, true
	}
	return time.Duration((1 - b.Tokens) / limits.Rate * float64(time.Second)), false
}

// slowed are the limits in a zone most of whose nodes are not ready.
func (l Limits) slowed() Limits { return Limits{Rate: l.Rate / slowdown, Burst: 1} }
