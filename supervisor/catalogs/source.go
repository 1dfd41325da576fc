package catalogs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/replicas"
)

var connectivityReady = connectivity.Ready.String()

// source is one catalog that the store follows.
type source struct {
	key     types.NamespacedName
	address string
	hosted  bool
	set     *replicas.Set
	ctx     context.Context //nolint:containedctx // the lifetime of the source
	cancel  context.CancelFunc
	store   *Store
	// nudges triggers a check in the current visit.
	nudges chan struct{}

	mu     sync.Mutex
	state  State
	memory memory
}

func (s *source) current() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// follow watches the replicas and starts visits while a replica serves. It continues to watch
// during a visit, which lasts as long as a replica with the extension API serves. It returns when
// ctx ends.
func (s *source) follow(ctx context.Context) {
	logger := log.FromContext(ctx).WithName("catalogs").WithValues("catalogSource", s.key.String(), "address", s.address)
	ctx = log.IntoContext(ctx, logger)
	defer s.end()
	read := reading{ended: make(chan outcome, 1)}
	defer read.stop()
	news := s.hosted
	overdue := time.NewTimer(s.store.patience)
	defer overdue.Stop()
	for {
		summary := s.set.Summary()
		s.observe(ctx, summary, news)
		read.follow(summary, s.nudges)
		if summary.Connectivity == connectivity.Ready && read.due(summary) {
			visiting := read.begin(ctx, summary)
			go func() { read.ended <- s.visit(visiting, summary.Joined) }()
		}
		news = false
		select {
		case <-ctx.Done():
			return
		case <-s.set.Changes():
			news = s.hosted
		case o := <-read.ended:
			read.done(o, s.store.refresh)
		case <-overdue.C:
			if s.unanswered(ctx) {
				overdue.Reset(s.store.patience)
			}
		case <-read.again():
			read.overdue = true
		}
	}
}

// end closes the connections.
func (s *source) end() {
	s.set.Close()
	if s.store.find(s.key) == nil {
		ungauge(s.key)
	}
	s.store.count()
}

// visit reads the content from a replica. With the extension API, it also watches the replica.
func (s *source) visit(ctx context.Context, joined int) outcome {
	begin := s.store.clock.Now()
	var last *visit
	err := s.set.Do(ctx, func(ctx context.Context, conn replicas.Conn) error {
		last = &visit{source: s, conn: conn, joined: joined}
		return last.run(ctx)
	})
	switch {
	case ctx.Err() != nil:
		return outcome{good: true}
	case err == nil:
		return outcome{good: true, again: s.store.refresh}
	case last != nil && last.broke:
		// A watch that ended is started again. A failure of the next one is reported.
		return outcome{good: s.store.clock.Since(begin) >= steady}
	default:
		s.fail(ctx, err)
		return outcome{}
	}
}

// observe records the state of the replicas and publishes changes. It always publishes if news is
// set.
func (s *source) observe(ctx context.Context, summary replicas.Summary, news bool) {
	if ctx.Err() != nil {
		return
	}
	changed, failure := s.take(summary)
	gauge(s.key, s.set.States())
	if changed || failure != nil {
		logger := log.FromContext(ctx).WithValues("state", summary.Connectivity.String())
		if failure != nil {
			logger = logger.WithValues("error", failure.Error())
		}
		logger.Info("Connection changed state")
	}
	if changed || failure != nil || news {
		s.store.publish(ctx, s.key)
	}
}

// unanswered sets an error if no replica has answered and no other error is known. Otherwise a
// catalog whose pods never get an address would stay without a report. It returns true while the
// content is being read, which has its own timeouts.
func (s *source) unanswered(ctx context.Context) (reading bool) {
	s.mu.Lock()
	waiting := s.state.Snapshot == nil && s.state.Err == nil
	reading = waiting && s.state.Connectivity == connectivityReady
	silent := waiting && !reading
	if silent {
		s.state.Err = fmt.Errorf("%w: no replica of it answers yet at %s", ErrNotConnected, s.address)
	}
	s.mu.Unlock()
	if silent {
		log.FromContext(ctx).Info("No replica answers yet")
		s.store.publish(ctx, s.key)
	}
	return reading
}

// take records the connectivity and, if it changed, the reason why no replica serves. The reason
// stays until a replica serves again.
func (s *source) take(summary replicas.Summary) (changed bool, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	observed := summary.Connectivity.String()
	changed = s.state.Connectivity != observed
	s.state.Connectivity = observed
	if observed == connectivityReady && (changed || s.state.LastConnect.IsZero()) {
		s.state.LastConnect = s.store.clock.Now()
	}
	if summary.Err == nil {
		if observed == connectivityReady && errors.Is(s.state.Err, ErrNotConnected) {
			s.state.Err, changed = nil, true
		}
		return changed, nil
	}
	failure = fmt.Errorf("%w: nothing answers at %s: %w", ErrNotConnected, s.address, summary.Err)
	if sameFailure(failure, s.state.Err) {
		return changed, nil
	}
	s.state.Err = failure
	return changed, failure
}
