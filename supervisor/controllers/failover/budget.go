package failover

import (
	"cmp"
	"slices"
	"time"
)

// Budget limits how fast the controller acts on pods. The zero value is full.
type Budget struct {
	// Marks holds the tokens for marks, which are urgent and must not wait for deletions. Deletions
	// holds the tokens for deletions. Slow holds those for deletions in a zone in which most nodes
	// are not ready.
	Marks, Deletions, Slow Bucket
	// Acted is when the controller last acted on pods of a namespace, by namespace. Entries are kept for longestPause.
	Acted map[string]time.Time
}

// at returns the budget at a time. The result shares nothing with b.
func (b Budget) at(now time.Time, limits Limits) Budget {
	b.Marks.fill(now, limits)
	b.Deletions.fill(now, limits)
	b.Slow.fill(now, limits.slowed())
	recent := map[string]time.Time{}
	for namespace, last := range b.Acted {
		if now.Sub(last) < longestPause {
			recent[namespace] = last
		}
	}
	b.Acted = recent
	return b
}

// candidate is an action that can be decided on.
type candidate struct {
	Action

	// refusals is how often the action has failed, and remaining is how many replicas of the catalog answer.
	refusals, remaining int
	// turn is how many candidates of the same namespace come before it.
	turn int
}

// sort orders candidates by priority. Actions that failed before come last. Namespaces take turns, and the one that
// has waited longest is first: many pods in one namespace do not delay the replicas of others. Within a namespace,
// pods of catalogs with the fewest remaining replicas come first.
func (b Budget) sort(candidates []candidate) {
	slices.SortStableFunc(candidates, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.refusals, y.refusals), cmp.Compare(x.remaining, y.remaining), cmp.Compare(x.Replica.UID, y.Replica.UID))
	})
	next := map[string]int{}
	for i := range candidates {
		c := &candidates[i]
		c.turn = next[c.Catalog.Namespace]
		next[c.Catalog.Namespace]++
	}
	slices.SortStableFunc(candidates, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.refusals, y.refusals), cmp.Compare(x.turn, y.turn),
			b.Acted[x.Catalog.Namespace].Compare(b.Acted[y.Catalog.Namespace]), cmp.Compare(x.remaining, y.remaining))
	})
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
