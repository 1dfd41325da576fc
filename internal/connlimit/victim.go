package connlimit

import "time"

// victim returns the connection to close in favor of a client, or nil.
//
// The connection belongs to the client that has the most connections, if the new client has fewer.
// It has no request; it may be busy if that client has more than its share or the new client has no
// connection. Otherwise it is a quiet connection of the new client, or of any client if the new
// client has none.
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

// quiet returns a connection of the client that has had no request for ownQuiet. For a client
// without connections it returns a connection of any client that has no request.
func (l *Listener) quiet(newcomer *host) *Conn {
	if newcomer.open == 0 {
		return l.worst(func(c *Conn) bool { return !c.busy() })
	}
	before := l.now() - ownQuiet
	return l.worst(func(c *Conn) bool {
		return c.host == newcomer && !c.busy() && time.Duration(c.active.Load()) <= before
	})
}

// worst returns the connection to close first among those that match.
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

// before reports whether a connection is closed rather than another. Connections that never had a
// request come first, then idle connections, then those with the oldest activity.
func (c *Conn) before(other *Conn) bool {
	if used := c.used.Load(); used != other.used.Load() {
		return !used
	}
	if busy := c.busy(); busy != other.busy() {
		return !busy
	}
	return c.active.Load() < other.active.Load()
}
