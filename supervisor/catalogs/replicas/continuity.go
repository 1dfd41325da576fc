package replicas

import "time"

// continuity records the connections to the replicas that serve.
type continuity struct {
	// since is when the set last began to serve without any of the earlier connections.
	since time.Time
	// serving holds the connections that served then: when each replica began to serve.
	serving map[*replica]time.Time
}

// next returns the continuity for the current states of the replicas. While one of the recorded
// connections remains, nothing changes: replicas can be replaced one by one.
func (c continuity) next(all []*replica, now time.Time) continuity {
	serving := map[*replica]time.Time{}
	for _, r := range all {
		if r.state.Health == Serving {
			serving[r] = r.state.Since
		}
	}
	for r, since := range serving {
		if recorded, is := c.serving[r]; is && recorded.Equal(since) {
			return c
		}
	}
	if len(serving) == 0 {
		return continuity{since: c.since}
	}
	return continuity{since: now, serving: serving}
}
