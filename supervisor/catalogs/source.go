package catalogs

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/proto/api"
)

// retryContent is how soon content is read again that could not be read: a
// catalog that has just started refuses calls until it is ready.
const retryContent = time.Second

var connectivityReady = connectivity.Ready.String()

// source is one catalog that is followed.
type source struct {
	key     types.NamespacedName
	address string
	conn    *grpc.ClientConn // nil when the address cannot be dialled
	cancel  context.CancelFunc
	store   *Store

	mu    sync.Mutex
	state State
}

func (s *source) current() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// follow watches the connection and reads the content when there is one to be
// read. It returns when ctx ends.
func (s *source) follow(ctx context.Context) {
	logger := log.FromContext(ctx).WithName("catalogs").WithValues("catalogSource", s.key.String(), "address", s.address)
	ctx = log.IntoContext(ctx, logger)
	defer func() {
		if err := s.conn.Close(); err != nil {
			logger.V(1).Info("Closing connection", "error", err.Error())
		}
	}()
	for {
		observed := s.conn.GetState()
		if observed == connectivity.Idle {
			// A connection that nothing is asked of falls asleep.
			s.conn.Connect()
		}
		var failure error
		if observed == connectivity.TransientFailure {
			failure = connectionError(ctx, s.conn)
		}
		s.observe(ctx, observed, failure)
		wait := s.store.refresh
		if observed == connectivity.Ready && !s.read(ctx) {
			wait = retryContent
		}
		if !s.sleep(ctx, observed, wait) {
			return
		}
	}
}

// sleep waits until the connection has left a state or the time is over. False
// when ctx has ended.
func (s *source) sleep(ctx context.Context, observed connectivity.State, wait time.Duration) bool {
	if observed == connectivity.TransientFailure {
		// Why there is no connection may change while there is none.
		wait = maxBackoff
	}
	if observed == connectivity.Ready || observed == connectivity.TransientFailure {
		timed, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		s.conn.WaitForStateChange(timed, observed)
		return ctx.Err() == nil
	}
	return s.conn.WaitForStateChange(ctx, observed)
}

// observe records the state of the connection and why there is none, if that is
// known. The failure is kept until the content has been read again.
func (s *source) observe(ctx context.Context, observed connectivity.State, failure error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	changed := s.state.Connectivity != observed.String()
	s.state.Connectivity = observed.String()
	if observed == connectivity.Ready && (changed || s.state.LastConnect.IsZero()) {
		s.state.LastConnect = s.store.clock.Now()
	}
	news := failure != nil && !sameFailure(failure, s.state.Err)
	if news {
		s.state.Err = failure
	}
	s.mu.Unlock()
	if !changed && !news {
		return
	}
	logger := log.FromContext(ctx).WithValues("state", observed.String())
	if news {
		logger = logger.WithValues("error", failure.Error())
	}
	logger.Info("Connection changed state")
	s.store.publish(ctx, s.key)
}

// read takes a new snapshot. False when that failed.
func (s *source) read(ctx context.Context) bool {
	logger := log.FromContext(ctx)
	begin := s.store.clock.Now()
	next, err := s.fetch(ctx)
	if ctx.Err() != nil {
		return false
	}
	changed, reworded := s.keep(next, err)
	switch {
	case err != nil && reworded:
		logger.Error(err, "Reading catalog content failed", "serving", "last good snapshot", "hasSnapshot", s.current().Snapshot != nil)
	case err == nil && changed:
		logger.Info("Read catalog content", "digest", next.Digest, "packages", len(next.Content.Packages), "duration", s.store.clock.Since(begin).String())
	}
	if changed {
		s.store.publish(ctx, s.key)
	}
	return err == nil
}

// keep takes the outcome of a reading into the state. changed says whether that
// is news, reworded whether it is so because of the error or its end.
func (s *source) keep(next *Snapshot, err error) (changed, reworded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.state.Snapshot
	reworded = !sameFailure(err, s.state.Err)
	changed = reworded || (err == nil && (old == nil || s.state.inherited || old.Digest != next.Digest))
	if reworded {
		s.state.Err = err
	}
	if err == nil && changed {
		s.state.Snapshot, s.state.inherited = next, false
	}
	return changed, reworded
}

// fetch gives the catalog's content: the snapshot that is held when the server
// says that nothing else is served, a new one otherwise.
func (s *source) fetch(ctx context.Context) (*Snapshot, error) {
	client := api.NewRegistryClient(s.conn)
	held := s.current().Snapshot
	if held == nil {
		return fetchSnapshot(ctx, client)
	}
	announced, err := announcedDigest(ctx, client, s.store.probe)
	if err != nil {
		return nil, err
	}
	if announced != "" && announced == held.announced {
		return held, nil
	}
	return fetchSnapshot(ctx, client)
}
