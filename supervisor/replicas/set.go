package replicas

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/dialproxy"
)

// Default times of a Probe: a replica that is lost is given up after the pause
// that is running, two timeouts and a short pause between: some three seconds.
const (
	DefaultInterval  = time.Second
	DefaultTimeout   = time.Second
	DefaultThreshold = 2
)

// Probe says how replicas are asked for their health.
type Probe struct {
	// Interval is the pause between two questions, and Timeout how long an answer
	// may take.
	Interval, Timeout time.Duration
	// Threshold is how many questions in a row stay without an answer before a
	// replica is given up.
	Threshold int
}

// DefaultProbe is how replicas of catalogs are asked.
func DefaultProbe() Probe {
	return Probe{Interval: DefaultInterval, Timeout: DefaultTimeout, Threshold: DefaultThreshold}
}

// Options are what a Set needs.
type Options struct {
	// Network connects to the pods of a catalog that is hosted, and Probe says how
	// they are asked for their health. Without a Network the endpoint is an address
	// of somebody else's: it is not asked, serves as long as there is a connection,
	// and Connectivity is that one's.
	Network *Network
	Probe   Probe
	// Proxies are for such an address.
	Proxies dialproxy.Environment
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Set is the replicas of a catalog. Its methods may be called from any goroutine.
type Set struct {
	ctx     context.Context //nolint:containedctx // the lifetime of the connections, which outlive the calls that ask for them
	end     context.CancelFunc
	options Options
	changes chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	members []*replica // in the order in which they joined
	joined  int
	turn    int
}

// NewSet makes a Set without replicas that lives until ctx ends or it is closed.
func NewSet(ctx context.Context, o Options) *Set {
	ctx, cancel := context.WithCancel(ctx)
	return &Set{ctx: ctx, end: cancel, options: o, changes: make(chan struct{}, 1)}
}

// Close ends every connection and waits until nothing runs any more.
func (s *Set) Close() {
	s.end()
	s.mu.Lock()
	s.members = nil
	s.mu.Unlock()
	s.running.Wait()
}

// Update makes the endpoints those that the catalog has. Connections to those
// that it had before stay as they are.
func (s *Set) Update(endpoints []Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	s.members = slices.DeleteFunc(s.members, func(r *replica) bool {
		gone := !slices.ContainsFunc(endpoints, r.state.same)
		if gone {
			changed = true
			s.count(r.state.Health, Unreachable)
			r.end()
		}
		return gone
	})
	for _, e := range endpoints {
		at := slices.IndexFunc(s.members, func(r *replica) bool { return r.state.same(e) })
		switch {
		case at < 0 && s.ctx.Err() == nil:
			changed = true
			s.members = append(s.members, s.start(e))
		case at >= 0 && s.members[at].state.Endpoint != e:
			changed = true
			r := s.members[at]
			if e.Ready && !r.state.Ready && r.state.Health != Serving {
				r.readied()
			}
			r.state = r.state.becomes(e)
		}
	}
	if changed {
		s.tell()
	}
}

// Changes receives when something about the replicas may have changed.
func (s *Set) Changes() <-chan struct{} { return s.changes }

// States gives what is known of each replica, in the order in which they joined.
func (s *Set) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]State, 0, len(s.members))
	for _, r := range s.members {
		states = append(states, r.state)
	}
	return states
}

// Summary puts together what is known of the replicas.
func (s *Set) Summary() Summary {
	states := s.States()
	summary := summarize(states)
	if s.options.Network == nil && len(states) == 1 {
		summary = Summary{Connectivity: states[0].connection, Err: states[0].Err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	summary.Joined, summary.Revision = s.joined, s.newest()
	return summary
}

// tell says that something changed. Who has not heard of the last change yet
// hears of both at once.
func (s *Set) tell() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// count notes that a replica began or ceased to serve.
func (s *Set) count(before, after Health) {
	if (before == Serving) != (after == Serving) {
		s.joined++
	}
}

// record takes what became known of a replica. The lock is not held.
func (s *Set) record(r *replica, change func(State) State) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := r.state
	r.state = change(before)
	s.count(before.Health, r.state.Health)
	if before.Health != r.state.Health || before.connection != r.state.connection || (before.Err == nil) != (r.state.Err == nil) {
		s.tell()
	}
	return r.state
}

// errGone says that the catalog has lost an endpoint.
var errGone = errors.New("the replica has been removed")

// start begins to follow an endpoint. The lock is held.
func (s *Set) start(e Endpoint) *replica {
	ctx, cancel := context.WithCancelCause(s.ctx)
	r := &replica{set: s, address: e.Address, ctx: ctx, suspected: make(chan struct{}, 1), ready: make(chan struct{}, 1)}
	r.end = func() { cancel(errGone) }
	r.state = State{Endpoint: e, Health: Unknown, Since: s.options.Clock.Now()}
	if err := r.connect(); err != nil {
		r.state.Health, r.state.Err, r.state.connection = Unreachable, err, connectivity.TransientFailure
		return r
	}
	if s.options.Network == nil {
		r.state.connection = r.link.client.GetState()
		s.running.Go(r.watch)
	} else {
		s.running.Go(r.ask)
	}
	return r
}
