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

// ErrNone says that a catalog has no replica that could be asked.
var ErrNone = errors.New("there is no replica to ask")

// Conn is a connection to a replica.
type Conn struct {
	grpc.ClientConnInterface

	// Replica is the one that it leads to.
	Replica Endpoint
}

// Do does op at a replica that serves. When that one fails to answer, or is given
// up while op waits for it, op is done again, from its beginning, at the next one,
// until there is none left. Other errors of op are returned as they are: another
// replica would say the same.
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
		if err == nil || ctx.Err() != nil || !Elsewhere(err) {
			return err
		}
		r.suspect()
		failures = append(failures, err)
	}
}

// failed is the error of an operation that was tried everywhere.
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

// call does op on the connection, and ends it when that is given up.
func (l *link) call(ctx context.Context, endpoint Endpoint, op func(ctx context.Context, conn Conn) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) }) //nolint:contextcheck // two contexts end the call
	defer stop()
	err := op(ctx, Conn{ClientConnInterface: l, Replica: endpoint})
	if err != nil && l.ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrGivenUp, err)
	}
	return err
}

// Elsewhere says whether an error of Do is one of the replicas and not of what they
// were asked for: another replica, or the same one later, may do it.
func Elsewhere(err error) bool {
	code := status.Code(err)
	return errors.Is(err, ErrGivenUp) || code == codes.Unavailable || code == codes.DeadlineExceeded
}

// choose gives the best replica that was not tried. Replicas that are equally
// good take turns.
func (s *Set) choose(tried map[*replica]bool) (*replica, *link, Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.newest()
	best, rank := []*replica(nil), lastResort+1
	for _, r := range s.members {
		if tried[r] || r.link == nil {
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
	s.turn++
	chosen := best[s.turn%len(best)]
	return chosen, chosen.link, chosen.state.Endpoint
}

// lastResort is the rank of a replica that is only asked when there is no other:
// it may just have come back, and if not, says why.
const lastResort = 5

// newest is the revision that was rolled out last of those of which a replica
// serves: the one whose oldest pod is the youngest, because a pod of an older
// revision may be replaced at any time. When that is the same, it is the one of the
// replica that joined last. During a roll-out the replicas of two revisions serve,
// maybe different content; asking only the new ones keeps what is read together
// the same.
func (s *Set) newest() string {
	begun := map[string]time.Time{}
	for _, r := range s.members {
		if first, known := begun[r.state.Revision]; !known || r.state.Created.Before(first) {
			begun[r.state.Revision] = r.state.Created
		}
	}
	newest, since := "", time.Time{}
	for _, r := range s.members {
		if at := begun[r.state.Revision]; r.state.available() && !at.Before(since) {
			newest, since = r.state.Revision, at
		}
	}
	return newest
}

// available says whether calls may be led to the replica without need.
func (s State) available() bool { return s.Health == Serving && s.Ready && !s.Terminating }

// rank says how good a replica is for a call: the lower the better.
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
