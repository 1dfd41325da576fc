package connlimit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn

	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1} }

func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}

func TestAdmit(t *testing.T) {
	type step struct {
		// from is the address of the client. busy and idle are the state of the connection and the
		// time since its last request.
		from  string
		busy  bool
		used  bool
		quiet time.Duration
		// refused is set if the connection is beyond the limit. closes is the number of the step
		// whose connection is closed.
		refused bool
		closes  int
	}
	times := func(n int, s step) []step {
		steps := make([]step, n)
		for i := range steps {
			steps[i] = s
		}
		return steps
	}
	cases := map[string]struct {
		reason string
		limit  int
		steps  []step
	}{
		"Room":        {"up to the limit all are admitted", 4, []step{{from: "192.0.2.1"}, {from: "192.0.2.1"}, {from: "192.0.2.2"}, {from: "192.0.2.3"}}},
		"NoLimit":     {"without a limit all are", 0, times(100, step{from: "192.0.2.1"})},
		"OwnFresh":    {"a client does not displace itself at once", 4, append(times(4, step{from: "192.0.2.1"}), step{from: "192.0.2.1", refused: true})},
		"OwnQuiet":    {"but what has been quiet for long", 4, []step{{from: "192.0.2.1"}, {from: "192.0.2.1", quiet: time.Minute, used: true}, {from: "192.0.2.1"}, {from: "192.0.2.1"}, {from: "192.0.2.1", closes: 2}}},
		"OwnBoundary": {"quiet is ten seconds", 4, append(times(4, step{from: "192.0.2.1", quiet: ownQuiet - time.Second, used: true}), step{from: "192.0.2.1", refused: true})},
		"OwnTime":     {"not a moment more", 4, append([]step{{from: "192.0.2.1", quiet: ownQuiet, used: true}}, append(times(3, step{from: "192.0.2.1"}), step{from: "192.0.2.1", closes: 1})...)},
		"OwnBusy":     {"a request may take longer", 4, append(times(4, step{from: "192.0.2.1", busy: true, quiet: time.Minute}), step{from: "192.0.2.1", refused: true})},
		"OthersQuiet": {"a client with as many keeps what is quiet", 4, append(append(times(2, step{from: "192.0.2.1"}), times(2, step{from: "192.0.2.2", quiet: time.Minute, used: true})...), step{from: "192.0.2.1", refused: true})},
		"NeverUsed":   {"what was never used goes first", 4, []step{{from: "192.0.2.1", quiet: time.Hour, used: true}, {from: "192.0.2.1", quiet: time.Minute}, {from: "192.0.2.1"}, {from: "192.0.2.1"}, {from: "192.0.2.2", closes: 2}}},
		"Longest":     {"then what has been quiet longest", 4, []step{{from: "192.0.2.1", quiet: time.Minute, used: true}, {from: "192.0.2.1", quiet: time.Hour, used: true}, {from: "192.0.2.1", used: true}, {from: "192.0.2.1", used: true}, {from: "192.0.2.2", closes: 2}}},
		"Fair":        {"the client that has the most makes room", 4, []step{{from: "192.0.2.1", quiet: time.Hour}, {from: "192.0.2.2"}, {from: "192.0.2.2"}, {from: "192.0.2.2"}, {from: "192.0.2.3", closes: 2}}},
		"IdleFirst":   {"an idle connection goes before a busy one", 4, []step{{from: "192.0.2.1", busy: true}, {from: "192.0.2.1", busy: true}, {from: "192.0.2.1", busy: true}, {from: "192.0.2.1", used: true}, {from: "192.0.2.2", closes: 4}}},
		"BusyHog":     {"requests of a client with more than its share are cut off", 4, append(times(4, step{from: "192.0.2.1", busy: true}), step{from: "192.0.2.2", closes: 1}, step{from: "192.0.2.2", closes: 2})},
		"BusyShare":   {"a client within its share keeps them, against one that has some", 8, append(append(append(times(2, step{from: "192.0.2.1", busy: true}), times(2, step{from: "192.0.2.2", busy: true})...), append(times(2, step{from: "192.0.2.3", busy: true}), step{from: "192.0.2.4", busy: true}, step{from: "192.0.2.5", busy: true})...), step{from: "192.0.2.4", refused: true})},
		"BusyQuarter": {"a quarter is no more than its share", 12, append(append(times(3, step{from: "192.0.2.1", busy: true}), times(3, step{from: "192.0.2.2", busy: true})...), append(append(times(3, step{from: "192.0.2.3", busy: true}), times(2, step{from: "192.0.2.4", busy: true})...), step{from: "192.0.2.5", busy: true}, step{from: "192.0.2.5", refused: true})...)},
		"BusyNew":     {"but not against a client that has none", 8, []step{{from: "192.0.2.1", busy: true}, {from: "192.0.2.1", busy: true}, {from: "192.0.2.2", busy: true}, {from: "192.0.2.3", busy: true}, {from: "192.0.2.4", busy: true}, {from: "192.0.2.5", busy: true}, {from: "192.0.2.6", busy: true}, {from: "192.0.2.7", busy: true}, {from: "192.0.2.8", busy: true, closes: 1}}},
		"Even":        {"a client gains nothing by taking from equals", 4, []step{{from: "192.0.2.1"}, {from: "192.0.2.2"}, {from: "192.0.2.3"}, {from: "192.0.2.4"}, {from: "192.0.2.1", refused: true}}},
		"EvenNew":     {"a new one takes from who has no request", 4, []step{{from: "192.0.2.1", busy: true}, {from: "192.0.2.2", used: true}, {from: "192.0.2.3", busy: true}, {from: "192.0.2.4", busy: true}, {from: "192.0.2.5", closes: 2}}},
		"EvenBusy":    {"where all work, it is a spare one", 4, []step{{from: "192.0.2.1", busy: true}, {from: "192.0.2.2", busy: true}, {from: "192.0.2.3", busy: true}, {from: "192.0.2.4", busy: true}, {from: "192.0.2.5", refused: true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // time stands still
				refused, wantClosed := 0, 0
				l := New(nil, tc.limit, Observer{Refused: func(string) { refused++ }})
				l.epoch = l.epoch.Add(-24 * time.Hour)
				var conns []*fakeConn
				for i, step := range tc.steps {
					raw, before := &fakeConn{from: step.from}, refused
					c := l.admit(raw)
					conns = append(conns, raw)
					if c == nil || refused > before != step.refused {
						t.Fatalf("%s: step %d: got %v, refused is %v", tc.reason, i+1, c, refused > before)
					}
					if step.closes > 0 && !conns[step.closes-1].closed {
						t.Errorf("%s: step %d does not close connection %d", tc.reason, i+1, step.closes)
					}
					closed := 0
					for _, c := range conns {
						if c.closed {
							closed++
						}
					}
					if step.closes > 0 {
						wantClosed++
					}
					if closed != wantClosed {
						t.Errorf("%s: step %d: %d connections are closed, want %d", tc.reason, i+1, closed, wantClosed)
					}
					if step.busy {
						c.Begin()
					}
					c.used.Store(step.used || step.busy)
					c.active.Store(int64(l.now() - step.quiet + time.Duration(i)))
				}
			})
		})
	}
}

// TestShare has random clients connect, work and leave. Whenever the listener refuses a connection,
// no other client has more than a quarter.
func TestShare(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		limit := 1 + random.IntN(40)
		refused := ""
		l := New(nil, limit, Observer{Refused: func(host string) { refused = host }})
		var conns []*Conn
		for range 500 {
			from, had := "10.0.0."+strconv.Itoa(random.IntN(1+random.IntN(30))), 0
			if h := l.hosts[from]; h != nil {
				had = h.open
			}
			refused = ""
			c := l.admit(&fakeConn{from: from})
			total := 0
			for name, h := range l.hosts {
				total += h.open
				if refused != "" && name != from && h.open > max(1, limit/share) && h.open > had+1 {
					t.Fatalf("round %d: %s is refused while %s has %d of %d", round, refused, name, h.open, limit)
				}
			}
			if total != len(l.open) || total > limit+max(leastSpare, limit/spareShare) {
				t.Fatalf("round %d: hosts have %d connections, the listener %d, the limit is %d", round, total, len(l.open), limit)
			}
			if c == nil {
				continue
			}
			conns = append(conns, c)
			if random.IntN(3) > 0 {
				c.Begin()
			}
			if random.IntN(4) == 0 {
				if err := conns[random.IntN(len(conns))].Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, c := range conns {
			_ = c.Close()
			_ = c.Close()
		}
		if len(l.open)+len(l.hosts)+len(l.spare) != 0 {
			t.Fatalf("round %d: %d connections, %d hosts and %d spare ones are remembered", round, len(l.open), len(l.hosts), len(l.spare))
		}
	}
}

// TestEndOfRequest checks that a connection is quiet from the end of its last request.
func TestEndOfRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		l := New(nil, 1, Observer{Refused: func(string) { refused++ }})
		raw := &fakeConn{from: "192.0.2.1"}
		c := l.admit(raw)
		c.Begin()
		<-time.After(time.Hour)
		c.End()
		<-time.After(ownQuiet - time.Second)
		l.admit(&fakeConn{from: "192.0.2.1"})
		if raw.closed || refused != 1 {
			t.Errorf("soon after a request: closed is %v, %d are refused, want a connection beyond the limit", raw.closed, refused)
		}
		<-time.After(time.Second)
		l.admit(&fakeConn{from: "192.0.2.1"})
		if !raw.closed || refused != 1 {
			t.Errorf("%v after a request: closed is %v, %d are refused, want the quiet one to be closed", ownQuiet, raw.closed, refused)
		}
	})
}

// TestSpare checks that connections beyond the limit end after spareTime unless there is room for
// them by then.
func TestSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		displaced := 0
		l := New(nil, 4, Observer{Displaced: func() { displaced++ }})
		var within []*Conn
		for _, from := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"} {
			c := l.admit(&fakeConn{from: from})
			c.Begin()
			within = append(within, c)
		}
		var beyond []*fakeConn
		for i := range 5 {
			raw := &fakeConn{from: "::" + strconv.Itoa(5+i)}
			beyond = append(beyond, raw)
			l.admit(raw).Begin()
		}
		for i, c := range beyond {
			if want := i < 3; c.closed != want {
				t.Errorf("spare connection %d of 5: closed is %v, want %v", i+1, c.closed, want)
			}
		}
		if len(l.open) != 6 {
			t.Errorf("%d connections are open, want the limit and 2", len(l.open))
		}
		if err := within[0].Close(); err != nil {
			t.Fatal(err)
		}
		if err := within[1].Close(); err != nil {
			t.Fatal(err)
		}
		raw := &fakeConn{from: "::20"}
		l.admit(raw).Begin()
		<-time.After(5*time.Second + time.Millisecond) // 5 s, as docs/security.md says
		synctest.Wait()
		closed := 0
		for _, c := range []*fakeConn{beyond[3], beyond[4], raw} {
			if c.closed {
				closed++
			}
		}
		if closed != 1 {
			t.Errorf("%d of 3 spare connections are closed, want the one that there is no room for", closed)
		}
		if len(l.open) != 4 || len(l.spare) != 0 || displaced != 4 {
			t.Errorf("%d connections are open, %d spare and %d displaced, want 4, 0 and 4", len(l.open), len(l.spare), displaced)
		}
	})
}

// TestHostOf checks which addresses count as one client.
func TestHostOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ address, want string }{
		"IPv4":                     {"192.0.2.7:4711", "192.0.2.7"},
		"IPv4 as IPv6":             {"[::ffff:192.0.2.7]:4711", "::ffff:192.0.2.7"},
		"IPv6":                     {"[2001:db8:0:1:2:3:4:5]:4711", "2001:db8:0:1::/64"},
		"IPv6 of the same network": {"[2001:db8:0:1:9::1]:4712", "2001:db8:0:1::/64"},
		"IPv6 of another network":  {"[2001:db8:0:2::1]:4711", "2001:db8:0:2::/64"},
		"IPv6 with a zone":         {"[fe80::1%eth0]:4711", "fe80::/64"},
	} {
		address := fixedAddr(tc.address)
		if got := HostOf(address); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

type fixedAddr string

func (fixedAddr) Network() string  { return "tcp" }
func (a fixedAddr) String() string { return string(a) }
