package connlimit

import "time"

// victim returns the connection to close in favor of a client, or nil.
//
// It is one of the client that has the most connections, as far as the new
// client has fewer: one without a request, or a busy one if the client has more
// than its share or the new one has none. Otherwise it is a quiet one of the new
// client itself, or of any client for one that has none.
func (l *Listener) victim(newcomer *host) *Conn {
	largest := newcomer
	for _, h := range l.hosts {
		if h.open > largest.open {
			largest = h
		}
	}
	if largest.open <= newcomer.open+1 {
		return l.quiet(newcomer)
	}
	found := l.worst(func(c *Conn) bool { return c.host == largest && !c.busy() })
	if found == nil && (newcomer.open == 0 || largest.open > l.limit/share) {
		found = l.worst(func(c *Conn) bool { return c.host == largest })
	}
	if found == nil {
		found = l.quiet(newcomer)
	}
	return found
}

// quiet returns a connection of a client that has had no request for some time,
// and for a client without connections one of any client that has no request.
func (l *Listener) quiet(newcomer *host) *Conn {
	if newcomer.open == 0 {
		return l.worst(func(c *Conn) bool { return !c.busy() })
	}
	before := l.now() - ownQuiet
	return l.worst(func(c *Conn) bool {
		return c.host == newcomer && !c.busy() && time.Duration(c.active.Load()) <= before
	})
}

// worst returns the connection to do without first among those that match.
func (l *Listener) worst(match func(*Conn) bool) *Conn {
	var found *Conn
	for c := range l.open {
		if match(c) && (found == nil || c.before(found)) {
			found = c
		}
	}
	return found
}

func (c *Conn) busy() bool { return c.requests.Load() > 0 }

// before reports whether a connection is closed rather than another: those that
// never had a request come first, then those without one, then those whose last
// one is longest ago.
func (c *Conn) before(other *Conn) bool {
	if used := c.used.Load(); used != other.used.Load() {
		return !used
	}
	if busy := c.busy(); busy != other.busy() {
		return !busy
	}
	return c.active.Load() < other.active.Load()
}
