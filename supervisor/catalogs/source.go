package catalogs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/replicas"
)

// retryContent is how soon content is read again that could not be read: a
// catalog that has just started refuses calls until it is ready. The pause doubles
// each time, up to the interval in which content is read anyway.
const retryContent = time.Second

var connectivityReady = connectivity.Ready.String()

// source is one catalog that is followed.
type source struct {
	key     types.NamespacedName
	address string
	hosted  bool
	set     *replicas.Set
	ctx     context.Context //nolint:containedctx // the lifetime of the source
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

// follow watches the replicas and reads the content when there is one to be read:
// when another replica serves, and every now and then. It goes on watching while
// it reads, which may take a while. It returns when ctx ends.
func (s *source) follow(ctx context.Context) {
	logger := log.FromContext(ctx).WithName("catalogs").WithValues("catalogSource", s.key.String(), "address", s.address)
	ctx = log.IntoContext(ctx, logger)
	defer s.end()
	read := reading{ended: make(chan bool, 1)}
	defer read.stop()
	news := s.hosted
	for {
		summary := s.set.Summary()
		s.observe(ctx, summary, news)
		if summary.Connectivity == connectivity.Ready && read.due(summary.Joined) {
			read.begin(summary.Joined)
			go func() { read.ended <- s.read(ctx) }()
		}
		news = false
		select {
		case <-ctx.Done():
			return
		case <-s.set.Changes():
			news = s.hosted
		case good := <-read.ended:
			read.done(good, s.store.refresh)
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
}

// reading knows when content is read: when another replica serves than when it
// was read last, and after some time.
type reading struct {
	ended   chan bool // tells whether a reading that was begun went well
	running bool
	timer   *time.Timer
	joined  int
	overdue bool
	// pause is the one after the last reading that failed; zero after one that
	// went well, or when another replica has begun or ceased to serve since.
	pause time.Duration
}

func (r *reading) due(joined int) bool {
	return !r.running && (r.timer == nil || r.overdue || r.joined != joined)
}

// begin notes that the content is being read.
func (r *reading) begin(joined int) {
	if r.joined != joined {
		r.pause = 0
	}
	r.running, r.joined, r.overdue = true, joined, false
}

// done notes how that went: what went well is done again after a time, what did
// not, soon, and later each time.
func (r *reading) done(good bool, refresh time.Duration) {
	wait := refresh
	if good {
		r.pause = 0
	} else {
		r.pause = min(max(retryContent, 2*r.pause), max(retryContent, refresh))
		wait = r.pause
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.running, r.timer = false, time.NewTimer(wait)
}

func (r *reading) again() <-chan time.Time {
	if r.timer == nil {
		return nil
	}
	return r.timer.C
}

// stop waits for the end of a reading that is under way.
func (r *reading) stop() {
	if r.running {
		<-r.ended
	}
	if r.timer != nil {
		r.timer.Stop()
	}
}

// observe tells whoever listens what is known of the replicas, when that is news:
// in any case when something about one of them is.
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

// take records what is known of the replicas, and why none serves, if that is
// known and news. The failure is kept until the content has been read again.
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
		return changed, nil
	}
	failure = fmt.Errorf("%w: nothing answers at %s: %w", ErrNotConnected, s.address, summary.Err)
	if sameFailure(failure, s.state.Err) {
		return changed, nil
	}
	s.state.Err = failure
	return changed, failure
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
// says that nothing else is served, a new one otherwise. All of it is read from
// one replica.
func (s *source) fetch(ctx context.Context) (*Snapshot, error) {
	held := s.current().Snapshot
	var next *Snapshot
	err := s.set.Do(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		next = nil
		if held != nil {
			announced, err := announcedDigest(ctx, api.NewRegistryClient(conn), s.store.probe)
			if err != nil {
				return err
			}
			if announced != "" && announced == held.announced {
				next = held
				return nil
			}
		}
		var err error
		next, err = fetchSnapshot(ctx, api.NewRegistryClient(conn))
		return err
	})
	return next, err
}
