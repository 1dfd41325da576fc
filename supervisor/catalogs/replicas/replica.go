package replicas

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

const (
	// reasonTimeout limits the call that returns why there is no connection.
	reasonTimeout = time.Second
	// reasonInterval is how often that call is repeated while there is no connection.
	reasonInterval = 10 * time.Second
)

// replica is one replica of a Set. The Set's lock guards state and conn.
type replica struct {
	set          *Set
	address      string
	ctx          context.Context //nolint:containedctx // the lifetime of the replica
	end          func()
	probeNow     chan struct{}
	reconnectNow chan struct{}

	state State
	conn  *replicaConn // nil if the address cannot be dialled
}

// replicaConn is a connection and its lifetime.
type replicaConn struct {
	grpc.ClientConnInterface

	ctx    context.Context //nolint:containedctx // the lifetime of the connection
	cancel context.CancelCauseFunc
	pod    *podConn         // to a pod, or
	client *grpc.ClientConn // to an address
}

// connect prepares a connection and sets conn. The caller holds the Set's lock.
func (r *replica) connect() error {
	made := &replicaConn{}
	var err error
	if network := r.set.options.Network; network != nil {
		var secure *dialtls.Credentials
		if r.state.Secured {
			secure = r.set.options.Credentials
		}
		made.pod, err = network.connect(r.ctx, r.address, secure)
		made.ClientConnInterface = made.pod
	} else {
		made.client, err = dialAddress(r.address, r.set.options.Proxies, r.set.options.Credentials)
		made.ClientConnInterface = made.client
	}
	if err != nil {
		return err
	}
	made.ctx, made.cancel = context.WithCancelCause(r.ctx)
	r.conn = made
	return nil
}

// ErrNoAnswer is returned by calls to a replica whose probes were not answered.
var ErrNoAnswer = errors.New("the replica does not answer")

// close cancels the current calls with cause and closes the connection.
func (l *replicaConn) close(cause error) {
	l.cancel(cause)
	if l.pod != nil {
		l.pod.close()
		return
	}
	if err := l.client.Close(); err != nil {
		log.FromContext(l.ctx).V(1).Info("Closing connection", "error", err.Error())
	}
}

func (r *replica) current() *replicaConn {
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	return r.conn
}

// triggerProbe triggers an immediate probe after a failed call.
func (r *replica) triggerProbe() {
	select {
	case r.probeNow <- struct{}{}:
	default:
	}
}

// triggerReconnect triggers an immediate probe over a new connection, after the replica has become
// ready. The current connection may be in back-off.
func (r *replica) triggerReconnect() {
	select {
	case r.reconnectNow <- struct{}{}:
	default:
	}
}

// probe probes the replica's health until its context ends.
func (r *replica) probe() {
	defer func() { r.current().close(errRemoved) }()
	options := r.set.options.Probe
	for {
		timer := time.NewTimer(r.probeDelay(r.probeOnce(options), options))
		select {
		case <-r.ctx.Done():
			timer.Stop()
			return
		case <-r.probeNow:
			timer.Stop()
		case <-r.reconnectNow:
			timer.Stop()
			r.reconnect(r.current())
		case <-timer.C:
			r.reconnectStarting()
		}
	}
}

// reconnectStarting reconnects a starting replica after a failed connection attempt, so that the next probe
// does not wait for the back-off. A replica that has answered before keeps its back-off.
func (r *replica) reconnectStarting() {
	r.set.mu.Lock()
	at, starting := r.conn, !r.state.Answered
	r.set.mu.Unlock()
	if connection, _ := at.pod.current(); starting && connection == connectivity.TransientFailure {
		r.reconnect(at)
	}
}

// probeDelay returns the time until the next probe. It is short after an unanswered probe, so that an
// unreachable replica is detected soon. Otherwise it is random within limits, which spreads the
// probes of all replicas.
func (r *replica) probeDelay(s State, probe Probe) time.Duration {
	if s.Failures > 0 && s.Failures < probe.Threshold {
		return probe.Interval / 4
	}
	return time.Duration(float64(probe.Interval) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // spreading load needs no secrecy
}

// probeOnce probes once and records the result.
func (r *replica) probeOnce(probe Probe) State {
	at := r.current()
	ctx, cancel := context.WithTimeout(r.ctx, probe.Timeout)
	defer cancel()
	health, err := healthOf(healthpb.NewHealthClient(at).Check(ctx, &healthpb.HealthCheckRequest{}))
	if r.ctx.Err() != nil {
		return State{}
	}
	state := r.set.record(r, func(s State) State { return s.next(health, err, probe.Threshold, r.set.options.Clock.Now()) })
	if connection, _ := at.pod.current(); state.Failures == probe.Threshold || (state.Failures > probe.Threshold && connection == connectivity.Ready) {
		// Nothing may listen at the other end any more. TCP would take many minutes to notice, even
		// after the replica returns.
		r.reconnect(at)
	}
	return state
}

// reconnect replaces a connection, and ends its calls with ErrNoAnswer.
func (r *replica) reconnect(old *replicaConn) {
	r.set.mu.Lock()
	err := r.connect()
	r.set.mu.Unlock()
	if err != nil {
		// Connecting worked before, so it fails only at the end of the context.
		log.FromContext(r.ctx).V(1).Info("Preparing another connection failed", "address", r.address, "error", err.Error())
		return
	}
	old.close(ErrNoAnswer)
}

// watch follows the state of the connection without probes until the replica's context ends.
func (r *replica) watch() {
	conn := r.conn.client
	defer r.conn.close(errRemoved)
	for r.ctx.Err() == nil {
		observed := conn.GetState()
		if observed == connectivity.Idle {
			// Without calls, gRPC makes a connection idle.
			conn.Connect()
		}
		var err error
		if observed == connectivity.TransientFailure {
			err = r.reason(conn)
		}
		if r.ctx.Err() == nil {
			r.set.record(r, func(s State) State { return s.from(observed, err, r.set.options.Clock.Now()) })
			r.waitForChange(conn, observed)
		}
	}
}

// waitForChange waits until the connection leaves a state. In TransientFailure, it returns after
// reasonInterval, because the reason may have changed.
func (r *replica) waitForChange(conn *grpc.ClientConn, observed connectivity.State) {
	ctx, cancel := r.ctx, func() {}
	if observed == connectivity.TransientFailure {
		ctx, cancel = context.WithTimeout(ctx, reasonInterval)
	}
	defer cancel()
	conn.WaitForStateChange(ctx, observed)
}

// reason returns why there is no connection; nil if there is one now. A call that does not wait for
// a connection fails with the error of the last attempt.
func (r *replica) reason(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(r.ctx, reasonTimeout)
	defer cancel()
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err == nil || conn.GetState() != connectivity.TransientFailure {
		return nil
	}
	if failure := r.set.options.Credentials.Failure(); failure != nil {
		return failure
	}
	return err
}
