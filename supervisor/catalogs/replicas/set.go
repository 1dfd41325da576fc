package replicas

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialproxy"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

// Defaults of a Probe. A replica is given up after at most the current pause, two timeouts and a
// short pause: about three seconds.
const (
	DefaultInterval  = time.Second
	DefaultTimeout   = time.Second
	DefaultThreshold = 2
)

// Probe configures health probes.
type Probe struct {
	// Interval is the pause between two probes. Timeout is the maximum time for an answer.
	Interval, Timeout time.Duration
	// Threshold is the number of consecutive unanswered probes after which a replica is given up.
	Threshold int
}

// DefaultProbe returns the probe of catalog replicas.
func DefaultProbe() Probe {
	return Probe{Interval: DefaultInterval, Timeout: DefaultTimeout, Threshold: DefaultThreshold}
}

// Options configures a Set.
type Options struct {
	// Network connects to the pods of a hosted catalog, and Probe configures their health probes.
	// Without a Network, the single endpoint is an address outside the supervisor's control. It is
	// not probed, serves while there is a connection, and determines Connectivity.
	Network *Network
	Probe   Probe
	// Proxies is the proxy configuration for such an address.
	Proxies dialproxy.Environment
	// Credentials secure the connections to such an address, and to pods with TLS; nil for plain text.
	Credentials *dialtls.Credentials
	// Clock provides the current time.
	Clock clock.PassiveClock
}

// Set is the set of replicas of a catalog. Its methods are safe for concurrent use.
type Set struct {
	ctx     context.Context //nolint:containedctx // the lifetime of the connections, which outlive the calls that ask for them
	end     context.CancelFunc
	options Options
	changes chan struct{}
	running sync.WaitGroup

	mu        sync.Mutex
	replicas  []*replica // in the order in which they joined
	epoch     int
	unbroken  continuity
	nextIndex int
}

// NewSet returns a Set without replicas. It lives until ctx ends or Close is called.
func NewSet(ctx context.Context, o Options) *Set {
	ctx, cancel := context.WithCancel(ctx)
	if o.Credentials == nil {
		o.Credentials = dialtls.NewCredentials(dialtls.Security{})
	}
	return &Set{ctx: ctx, end: cancel, options: o, changes: make(chan struct{}, 1)}
}

// Close closes every connection and waits for all goroutines.
func (s *Set) Close() {
	s.end()
	s.mu.Lock()
	s.replicas = nil
	s.mu.Unlock()
	s.running.Wait()
}

// Update sets the endpoints of the catalog. Connections to endpoints that remain stay open.
func (s *Set) Update(endpoints []Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	s.replicas = slices.DeleteFunc(s.replicas, func(r *replica) bool {
		gone := !slices.ContainsFunc(endpoints, r.state.same)
		if gone {
			changed = true
			s.advanceEpoch(r.state.Health, Unreachable)
			r.end()
		}
		return gone
	})
	for _, e := range endpoints {
		at := slices.IndexFunc(s.replicas, func(r *replica) bool { return r.state.same(e) })
		switch {
		case at < 0 && s.ctx.Err() == nil:
			changed = true
			s.replicas = append(s.replicas, s.start(e))
		case at >= 0 && s.replicas[at].state.Endpoint != e:
			changed = true
			r := s.replicas[at]
			if e.Ready && !r.state.Ready && r.state.Health != Serving {
				r.triggerReconnect()
			}
			r.state = r.state.withEndpoint(e)
		}
	}
	if changed {
		s.unbroken = s.unbroken.next(s.replicas, s.options.Clock.Now())
		s.notify()
	}
}

// Reconnect makes failed connections to an address connect now instead of after their back-off.
func (s *Set) Reconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replicas {
		if r.conn != nil && r.conn.client != nil {
			r.conn.client.ResetConnectBackoff()
		}
	}
}

// Changes returns a channel that receives after the state of a replica may have changed.
func (s *Set) Changes() <-chan struct{} { return s.changes }

// States returns the state of each replica, in the order in which they joined.
func (s *Set) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]State, 0, len(s.replicas))
	for _, r := range s.replicas {
		states = append(states, r.state)
	}
	return states
}

// Secured reports whether there are replicas, and the connections to all of them use TLS.
func (s *Set) Secured() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.replicas) > 0 && !slices.ContainsFunc(s.replicas, func(r *replica) bool { return !r.state.Secured })
}

// Summary summarizes the states of all replicas.
func (s *Set) Summary() Summary {
	states := s.States()
	summary := summarize(states)
	if s.options.Network == nil && len(states) == 1 {
		summary = Summary{Connectivity: states[0].connection, Err: states[0].Err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	summary.Epoch, summary.Revision, summary.Since = s.epoch, newestRevision(s.replicas), s.unbroken.since
	return summary
}

// notify signals a change. A pending signal covers later changes.
func (s *Set) notify() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// advanceEpoch increments the epoch when a replica begins or ceases to serve.
func (s *Set) advanceEpoch(before, after Health) {
	if (before == Serving) != (after == Serving) {
		s.epoch++
	}
}

// record changes the state of a replica and signals relevant changes. The caller does not hold the
// lock.
func (s *Set) record(r *replica, change func(State) State) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := r.state
	r.state = change(before)
	s.advanceEpoch(before.Health, r.state.Health)
	s.unbroken = s.unbroken.next(s.replicas, s.options.Clock.Now())
	if before.Health != r.state.Health || before.connection != r.state.connection || s.otherReason(before.Err, r.state.Err) {
		s.notify()
	}
	return r.state
}

// otherReason reports whether an error is another one than before. For pods, probes repeat an error with other texts all
// the time.
func (s *Set) otherReason(before, now error) bool {
	if before == nil || now == nil {
		return (before == nil) != (now == nil)
	}
	return s.options.Network == nil && before.Error() != now.Error()
}

// errRemoved is the cause for cancelling the calls to a removed endpoint.
var errRemoved = errors.New("the replica has been removed")

// start follows an endpoint. The caller holds the lock.
func (s *Set) start(e Endpoint) *replica {
	ctx, cancel := context.WithCancelCause(s.ctx)
	r := &replica{set: s, address: e.Address, ctx: ctx, probeNow: make(chan struct{}, 1), reconnectNow: make(chan struct{}, 1)}
	r.end = func() { cancel(errRemoved) }
	r.state = State{Endpoint: e, Health: Unknown, Since: s.options.Clock.Now()}
	if err := r.connect(); err != nil {
		r.state.Health, r.state.Err, r.state.connection = Unreachable, err, connectivity.TransientFailure
		return r
	}
	if s.options.Network == nil {
		r.state.connection = r.conn.client.GetState()
		s.running.Go(r.watch)
	} else {
		s.running.Go(r.probe)
	}
	return r
}
