package server

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/stats"
)

// leastRate is how many bytes per second a client must take of each answer after the stall timeout.
const leastRate = 16 << 10

// unread holds the messages on a connection that its client has not taken yet.
//
// For its handler, a call ends as soon as gRPC has queued the answer. gRPC releases the memory of
// the message when the client has taken it; see the codec of the package registry.
type unread struct {
	mu             sync.Mutex
	oldest, newest *delivery
}

// delivery is a message that is sent to a client. It implements
// [github.com/chandlery/chandlery/server/registry.Outgoing].
type delivery struct {
	message any
	conn    *connection
	size    int64
	// due is the time by which the client must have taken the message. The lock of unread guards
	// the following fields.
	due            time.Duration
	waiting        bool
	earlier, later *delivery
}

// Message returns the message itself.
func (a *delivery) Message() any { return a.message }

// Queued records that the message now waits for its client.
func (a *delivery) Queued() {
	set, u := a.conn.set, &a.conn.unread
	now := set.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.newest == nil {
		u.oldest = a
		a.conn.Begin()
	} else {
		u.newest.later, a.earlier = a, u.newest
	}
	u.newest = a
	a.waiting, a.due = true, now+set.limits.StallTimeout+time.Duration(a.size)*time.Second/leastRate
}

// Gone records that the client took the message, or that gRPC dropped it.
func (a *delivery) Gone() {
	u := &a.conn.unread
	u.mu.Lock()
	defer u.mu.Unlock()
	if !a.waiting {
		return
	}
	a.waiting = false
	if a.earlier == nil {
		u.oldest = a.later
	} else {
		a.earlier.later = a.later
	}
	if a.later == nil {
		u.newest = a.earlier
	} else {
		a.later.earlier = a.earlier
	}
	a.earlier, a.later = nil, nil
	if u.newest == nil {
		a.conn.End()
	}
}

// state reports whether messages wait for the client, and whether one of them is overdue.
func (u *unread) state(now time.Duration) (waiting, overdue bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for a := u.oldest; a != nil; a = a.later {
		if now >= a.due {
			return true, true
		}
	}
	return u.oldest != nil, false
}

// outgoing returns a message in the form that the codec tracks. It returns the message unchanged if
// there is no connection or the message is empty.
func outgoing(message any, size int, conn *connection) any {
	if conn == nil || size == 0 {
		return message
	}
	return &delivery{message: message, conn: conn, size: int64(size)}
}

// cancelledCalls is a [stats.Handler] for answers whose client has cancelled the call. gRPC may drop these
// without releasing them.
type cancelledCalls struct{}

// TagRPC implements [stats.Handler].
func (cancelledCalls) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements [stats.Handler]. A message that is queued before its call
// is cancelled is released; one that is queued afterwards may not be.
func (cancelledCalls) HandleRPC(ctx context.Context, event stats.RPCStats) {
	sent, ok := event.(*stats.OutPayload)
	if !ok || ctx.Err() == nil {
		return
	}
	if a, ok := sent.Payload.(*delivery); ok {
		a.Gone()
	}
}

// TagConn implements [stats.Handler].
func (cancelledCalls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (cancelledCalls) HandleConn(context.Context, stats.ConnStats) {}

// closeUnread closes the connections of clients that have not taken all messages, and returns how many it closed.
func (s *connections) closeUnread() int {
	s.mu.Lock()
	var found []*connection
	for c := range s.open {
		if waiting, _ := c.unread.state(s.now()); waiting {
			found = append(found, c)
		}
	}
	s.mu.Unlock()
	for _, c := range found {
		_ = c.Conn.Close()
	}
	return len(found)
}
