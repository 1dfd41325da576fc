package connlimit

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// ownQuiet is how long a connection must have had no request before a new connection of the
	// same client replaces it.
	ownQuiet = 10 * time.Second
	// share is the part of all connections, as a divisor, that one client may have. Beyond it, the
	// listener closes connections of the client in the middle of a request to make room for other
	// clients.
	share = 4
	// spareShare is how many connections there may be beyond the limit, as a
	// divisor of the limit, and leastSpare is the smallest such number.
	spareShare = 16
	leastSpare = 2
	// spareTime is how long a connection beyond the limit stays open.
	spareTime = 5 * time.Second
)

// Observer gets the events of a listener. Its functions may be nil. They are
// called with the listener's lock held and must not call the listener.
type Observer struct {
	// Open is called with the number of connections when it changes.
	Open func(connections int)
	// Displaced is called when a connection is closed to make room for another.
	Displaced func()
	// Refused is called when there is no room within the limit for a connection of a host.
	Refused func(host string)
}

// Listener accepts a bounded number of connections. Create one with [New].
type Listener struct {
	net.Listener

	limit    int
	observer Observer
	epoch    time.Time

	mu    sync.Mutex
	open  map[*Conn]struct{}
	hosts map[string]*host
	// spare are the connections beyond the limit, the oldest first.
	spare []*Conn
}

// host is a client.
type host struct {
	name string
	open int
}

// New returns a listener that accepts up to limit connections of another listener, and a sixteenth
// more for some seconds. A limit of 0 accepts any number.
func New(l net.Listener, limit int, observer Observer) *Listener {
	return &Listener{
		Listener: l, limit: limit, observer: observer, epoch: time.Now(),
		open: map[*Conn]struct{}{}, hosts: map[string]*host{},
	}
}

// now returns the monotonic time since the listener was created.
func (l *Listener) now() time.Duration { return time.Since(l.epoch) }

// Accept implements [net.Listener]. All connections are of type [*Conn].
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(raw); c != nil {
			return c, nil
		}
		_ = raw.Close()
	}
}

// admit returns the connection to use, or nil if there is no room for it.
func (l *Listener) admit(raw net.Conn) *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := HostOf(raw.RemoteAddr())
	owner := l.hosts[name]
	if owner == nil {
		owner = &host{name: name}
	}
	c := &Conn{Conn: raw, listener: l, host: owner}
	c.active.Store(int64(l.now()))
	if l.limit > 0 && len(l.open) >= l.limit && !l.makeRoom(c) {
		return nil
	}
	l.hosts[name] = owner
	owner.open++
	l.open[c] = struct{}{}
	l.report()
	return c
}

// makeRoom reports whether there is room for a connection after it has closed another connection or
// made the new one a spare connection.
func (l *Listener) makeRoom(c *Conn) bool {
	if victim := l.victim(c.host); victim != nil {
		l.displace(victim)
		return true
	}
	if l.observer.Refused != nil {
		l.observer.Refused(c.host.name)
	}
	most := max(leastSpare, l.limit/spareShare)
	if len(l.open) >= l.limit+most {
		if len(l.spare) == 0 {
			return false
		}
		l.displace(l.spare[0])
	}
	l.spare = append(l.spare, c)
	c.expire = time.AfterFunc(spareTime, func() { l.expired(c) })
	return true
}

// expired closes a spare connection unless there is now room for it.
func (l *Listener) expired(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.open[c]; !ok {
		return
	}
	if len(l.open) > l.limit {
		l.displace(c)
		return
	}
	l.dropSpare(c)
}

// displace closes a connection in favor of another. The server of the connection gets an error.
func (l *Listener) displace(c *Conn) {
	if l.observer.Displaced != nil {
		l.observer.Displaced()
	}
	l.forget(c)
	_ = c.Conn.Close()
}

// forget removes a connection from the listener's records, once.
func (l *Listener) forget(c *Conn) {
	if _, ok := l.open[c]; !ok {
		return
	}
	delete(l.open, c)
	c.host.open--
	if c.host.open == 0 {
		delete(l.hosts, c.host.name)
	}
	l.dropSpare(c)
	l.report()
}

func (l *Listener) dropSpare(c *Conn) {
	for i, other := range l.spare {
		if other == c {
			l.spare = append(l.spare[:i], l.spare[i+1:]...)
			c.expire.Stop()
			return
		}
	}
}

func (l *Listener) report() {
	if l.observer.Open != nil {
		l.observer.Open(len(l.open))
	}
}

// networkBits is the part of an IPv6 address that a client does not choose. One client may own all
// addresses of a network.
const networkBits = 64

// HostOf returns the host of an address. Connections from all ports of a host, or from one IPv6
// network of 64 bits, belong to the same client.
func HostOf(address net.Addr) string {
	name, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	ip, err := netip.ParseAddr(name)
	if err != nil || ip.Unmap().Is4() {
		return name
	}
	network, err := ip.WithZone("").Prefix(networkBits)
	if err != nil {
		return name
	}
	return network.String()
}

// Conn is an accepted connection.
type Conn struct {
	net.Conn

	listener *Listener
	host     *host
	// expire ends a spare connection.
	expire *time.Timer
	// requests is the number of requests that the server works on.
	requests atomic.Int64
	// active is the time at which a request last began or ended. used is set after the first
	// request.
	active atomic.Int64
	used   atomic.Bool
}

// Begin records that the server works on a request of the connection. A connection with such a
// request is busy. A busy connection is closed to make room only if its client has many
// connections.
func (c *Conn) Begin() {
	c.requests.Add(1)
	c.used.Store(true)
}

// End records that the server has finished a request.
func (c *Conn) End() {
	c.active.Store(int64(c.listener.now()))
	c.requests.Add(-1)
}

// Host returns the IP address of the client.
func (c *Conn) Host() string { return c.host.name }

// Close implements [net.Conn].
func (c *Conn) Close() error {
	c.listener.mu.Lock()
	c.listener.forget(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
