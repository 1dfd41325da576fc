package replicas

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrNone is returned if a catalog has no replica to call.
var ErrNone = errors.New("there is no replica to ask")

// Conn is a connection to a replica.
type Conn struct {
	grpc.ClientConnInterface

	// Replica is the endpoint of the connection.
	Replica Endpoint
}

// Do calls op with a connection to a serving replica. If the replica fails to answer or is given up
// during op, Do calls op again with the next replica until none is left. Do returns other errors of
// op unchanged, because another replica would return the same.
func (s *Set) Do(ctx context.Context, op func(ctx context.Context, conn Conn) error) error {
	var failures []error
	tried := map[*replica]bool{}
	for {
		r, at, endpoint := s.choose(tried)
		if r == nil {
			return s.failed(failures)
		}
		tried[r] = true
		err := at.call(ctx, endpoint, op)
		if err == nil || ctx.Err() != nil || !IsReplicaFailure(err) {
			return err
		}
		r.triggerProbe()
		failures = append(failures, err)
	}
}

// failed returns the error of an operation that failed at every replica.
func (s *Set) failed(failures []error) error {
	if len(failures) == 1 {
		return failures[0]
	}
	if len(failures) > 1 {
		return fmt.Errorf("each of %d replicas failed: %w", len(failures), errors.Join(failures...))
	}
	if err := s.Summary().Err; err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return ErrNone
}

// call calls op with the connection and cancels it when the connection is given up.
func (l *replicaConn) call(ctx context.Context, endpoint Endpoint, op func(ctx context.Context, conn Conn) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) }) //nolint:contextcheck // two contexts end the call
	defer stop()
	err := op(ctx, Conn{ClientConnInterface: l, Replica: endpoint})
	if err != nil && l.ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

// IsReplicaFailure reports whether an error of Do is due to the replicas and not to the request. Another
// replica, or the same one later, may succeed.
func IsReplicaFailure(err error) bool {
	code := status.Code(err)
	return errors.Is(err, ErrNoAnswer) || code == codes.Unavailable || code == codes.DeadlineExceeded
}

// choose returns the best replica that was not tried. Replicas of equal rank take turns.
func (s *Set) choose(tried map[*replica]bool) (*replica, *replicaConn, Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := newestRevision(s.replicas)
	best, rank := []*replica(nil), lastResort+1
	for _, r := range s.replicas {
		if tried[r] || r.conn == nil {
			continue
		}
		switch its := r.state.rank(newest); {
		case its == lastResort && len(tried) > 0:
		case its < rank:
			best, rank = []*replica{r}, its
		case its == rank:
			best = append(best, r)
		}
	}
	if len(best) == 0 {
		return nil, nil, Endpoint{}
	}
	s.nextIndex++
	chosen := best[s.nextIndex%len(best)]
	return chosen, chosen.conn, chosen.state.Endpoint
}

// lastResort is the rank of a replica that is called only if there is no other. The replica may
// have just recovered; otherwise, the call returns its error.
const lastResort = 5

// newestRevision returns the revision of the latest rollout with a serving replica. The latest rollout is
// the one whose oldest pod is the youngest, because pods of an older revision can be replaced at
// any time. For equal times, it is the revision of the replica that joined last.
//
// During a rollout, replicas of two revisions serve, possibly with different content. Calls prefer
// the newest revision, so that consecutive reads see the same content.
func newestRevision(replicas []*replica) string {
	begun := map[string]time.Time{}
	for _, r := range replicas {
		if first, known := begun[r.state.Revision]; !known || r.state.Created.Before(first) {
			begun[r.state.Revision] = r.state.Created
		}
	}
	newest, since := "", time.Time{}
	for _, r := range replicas {
		if at := begun[r.state.Revision]; r.state.available() && !at.Before(since) {
			newest, since = r.state.Revision, at
		}
	}
	return newest
}

// available reports whether the replica can take any call.
func (s State) available() bool { return s.Health == Serving && s.Ready && !s.Terminating }

// rank returns the rank of a replica for a call; lower is better.
func (s State) rank(newest string) int {
	switch {
	case s.available() && s.Revision == newest:
		return 0
	case s.available():
		return 1
	case s.Health == Serving && !s.Terminating:
		return 2
	case s.Health == Serving:
		return 3
	case s.Health == Unknown:
		return 4
	default:
		return lastResort
	}
}
