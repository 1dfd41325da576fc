package failover

import "time"

// Budget limits how fast the controller acts on pods. The zero value is full.
type Budget struct {
	// Marks holds the tokens for marks, which are urgent and must not wait for deletions. Deletions
	// holds the tokens for deletions. Slow holds those for deletions in a zone in which most nodes
	// are not ready.
	Marks, Deletions, Slow Bucket
}

// Bucket is a token bucket. It is filled at a rate up to a size. The zero value is full.
type Bucket struct {
	Tokens float64
	// Filled is when the bucket was last filled.
	Filled time.Time
}

// fill adds the tokens since the last fill.
func (b *Bucket) fill(now time.Time, limits Limits) {
	size := float64(limits.Burst)
	switch elapsed := now.Sub(b.Filled); {
	case b.Filled.IsZero():
		b.Tokens, b.Filled = size, now
	case elapsed > 0:
		b.Tokens, b.Filled = min(size, b.Tokens+elapsed.Seconds()*limits.Rate), now
	}
}

// take takes a token. If there is none, wait is the time until the next one.
func (b *Bucket) take(limits Limits) (wait time.Duration, ok bool) {
	if b.Tokens >= 1 {
		b.Tokens--
		return 0, true
	}
	return time.Duration((1 - b.Tokens) / limits.Rate * float64(time.Second)), false
}

// slowed returns the limits for a zone in which most nodes are not ready.
func (l Limits) slowed() Limits { return Limits{Rate: l.Rate / slowdown, Burst: 1} }
