package catalogs

import (
	"context"
	"time"

	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

var connectivityReady = connectivity.Ready.String()

// readPause is the minimum time between two readings of a catalog. It limits the cost of a catalog whose
// content changes, or seems to change, all the time.
const readPause = time.Second

// reflector keeps the snapshot of one catalog up to date.
type reflector struct {
	key     types.NamespacedName
	address string
	hosted  bool
	set     *replicas.Set
	ctx     context.Context //nolint:containedctx // the lifetime of the reflector
	cancel  context.CancelFunc
	store   *Store
	tracker *tracker
	// credentials secure the connection to an address.
	credentials *dialtls.Credentials
	warned      dialtls.Reason // of the last known certificates
	// checks triggers a check in the current session.
	checks chan struct{}
	// lastRead is the start of the last reading. Readings do not overlap.
	lastRead time.Time
}

// connects reports whether the reflector connects to a target.
func (s *reflector) connects(to target) bool {
	return s.address == to.address && s.hosted == to.hosted && s.credentials.Encrypted() == to.security.Settings.Enabled
}

// update replaces the certificates, and reports whether they or their warning changed. The caller holds the lock of the
// set.
func (s *reflector) update(security dialtls.Security) (changed bool) {
	if changed = s.credentials.Update(security); changed {
		recordClientCertificate(s.key, s.credentials.Expiry())
		s.set.Reconnect()
	}
	warned := s.warned
	s.warned = ""
	if warning := s.credentials.Status(s.store.clock.Now()).Warning; warning != nil {
		s.warned = warning.Reason
	}
	return changed || warned != s.warned
}

// run watches the replicas and starts sessions while a replica serves. It continues to watch
// during a session, which lasts as long as a replica with the extension API serves. It returns when
// ctx ends.
func (s *reflector) run(ctx context.Context) {
	logger := log.FromContext(ctx).WithName("catalogs").WithValues("catalogSource", s.key.String(), "address", s.address)
	ctx = log.IntoContext(ctx, logger)
	defer s.end()
	snapshotReads.WithLabelValues(s.key.Namespace, s.key.Name) // begins at 0, so that the first reading is an increase
	schedule := sessionSchedule{ended: make(chan sessionResult, 1)}
	defer schedule.stop()
	publish := s.hosted
	overdue := time.NewTimer(s.store.settings.Answer)
	defer overdue.Stop()
	for {
		summary := s.set.Summary()
		s.observe(ctx, summary, publish)
		schedule.update(summary, s.checks)
		if summary.Connectivity == connectivity.Ready && schedule.isDue(summary) {
			running := schedule.start(ctx, summary)
			go func() { schedule.ended <- s.runSession(running, summary.Epoch) }()
		}
		publish = false
		select {
		case <-ctx.Done():
			return
		case <-s.set.Changes():
			publish = s.hosted
		case o := <-schedule.ended:
			schedule.finish(o, s.store.settings.Refresh)
		case <-overdue.C:
			if s.timeOut(ctx) {
				overdue.Reset(s.store.settings.Answer)
			}
		case <-schedule.timerChan():
			schedule.overdue = true
		}
	}
}

// restore uses the content on disk if no content has been read after restoreDelay. The catalog is read again as soon
// as it answers.
func (s *reflector) restore(ctx context.Context) {
	if s.store.Contents == nil {
		return
	}
	pause(ctx, s.store.settings.Restore)
	if ctx.Err() != nil || s.tracker.current().Snapshot != nil {
		return
	}
	logger := log.FromContext(ctx).WithName("catalogs").WithValues("catalogSource", s.key.String(), "address", s.address)
	kept, writtenAt, err := s.store.Contents.restore(ctx, s.key, s.store.settings.Limit)
	switch {
	case err != nil:
		logger.Error(err, "Cannot use the content of the catalog on disk")
	case kept != nil && s.tracker.restore(s.store.pool.add(s.key.Namespace, kept), writtenAt):
		logger.Info("The catalog does not answer; using its last known content", "readAt", writtenAt, "packages", len(kept.Content.Packages()))
		s.store.followed.recordSnapshots()
		s.store.publisher.publish(ctx, s.key)
	}
}

// end closes the connections.
func (s *reflector) end() {
	s.set.Close()
	if s.store.followed.find(s.key) == nil {
		deleteMetrics(s.key)
	}
	s.store.followed.recordSnapshots()
}

// runSession reads the content from a replica. With the extension API, it also watches the replica.
func (s *reflector) runSession(ctx context.Context, epoch int) sessionResult {
	begin := s.store.clock.Now()
	var last *session
	err := s.set.Do(ctx, func(ctx context.Context, conn replicas.Conn) error {
		last = &session{reflector: s, conn: conn, epoch: epoch}
		return last.run(ctx)
	})
	switch {
	case ctx.Err() != nil:
		return sessionResult{ok: true}
	case err == nil:
		return sessionResult{ok: true, next: s.store.settings.Refresh}
	case last != nil && last.watchEnded:
		// A watch that ended is started again. A failure of the next one is reported.
		return sessionResult{ok: s.store.clock.Since(begin) >= steady}
	default:
		s.fail(ctx, err)
		return sessionResult{}
	}
}

// observe records the state of the replicas and publishes changes. It always publishes if always is
// set.
func (s *reflector) observe(ctx context.Context, summary replicas.Summary, always bool) {
	if ctx.Err() != nil {
		return
	}
	changed, failure := s.tracker.connected(summary)
	recordReplicas(s.key, s.set.States())
	if changed || failure != nil {
		logger := log.FromContext(ctx).WithValues("state", summary.Connectivity.String())
		if failure != nil {
			logger = logger.WithValues("error", failure.Error())
		}
		logger.Info("Connection changed state")
	}
	if changed || failure != nil || always {
		s.store.publisher.publish(ctx, s.key)
	}
}

// timeOut reports that no replica has answered yet. It returns true while the content is being read.
func (s *reflector) timeOut(ctx context.Context) (reading bool) {
	failed, reading := s.tracker.timeOut()
	if failed {
		log.FromContext(ctx).Info("No replica answers yet")
		s.store.publisher.publish(ctx, s.key)
	}
	return reading
}

// fetch reads content, unless another catalog of the namespace has read it already.
func (s *reflector) fetch(ctx context.Context, announced string, read func(ctx context.Context) (*Snapshot, error)) (*Snapshot, error) {
	s.throttle(ctx)
	release := s.store.readers.acquire(ctx)
	defer release()
	if cached := s.store.pool.find(s.key.Namespace, announced); cached != nil {
		return cached, nil
	}
	begin := s.store.clock.Now()
	next, err := read(ctx)
	if err != nil {
		return nil, err
	}
	snapshotReads.WithLabelValues(s.key.Namespace, s.key.Name).Inc()
	next = s.store.pool.add(s.key.Namespace, next)
	log.FromContext(ctx).V(1).Info("Read all of the catalog", "digest", next.Digest, "duration", s.store.clock.Since(begin).String())
	return next, nil
}

// throttle waits until readPause has passed since the last reading.
func (s *reflector) throttle(ctx context.Context) {
	pause(ctx, readPause-s.store.clock.Since(s.lastRead))
	s.lastRead = s.store.clock.Now()
}

// record records the content of a server: a snapshot, an error, or neither if the content is
// ignored.
func (s *reflector) record(ctx context.Context, from server, announced string, next *Snapshot, err error) {
	if ctx.Err() != nil {
		return
	}
	changed, failed := s.tracker.record(from, announced, next, err)
	logger := log.FromContext(ctx)
	switch {
	case err != nil && failed:
		logger.Error(err, "Reading catalog content failed", "serving", "last good snapshot", "hasSnapshot", s.tracker.current().Snapshot != nil)
	case next != nil && changed:
		logger.Info("Catalog content", "digest", next.Digest, "packages", len(next.Content.Packages()), "bytes", next.Bytes())
	}
	if next != nil && err == nil {
		// The write outlives the reflector.
		s.store.Contents.keep(s.store.ctx, s.key, next) //nolint:contextcheck // see above
	}
	if changed {
		s.store.followed.recordSnapshots()
		s.store.publisher.publish(ctx, s.key)
	}
}

// fail records the error of a session that reached no replica.
func (s *reflector) fail(ctx context.Context, err error) {
	changed, transient := s.tracker.failed(err)
	switch {
	case ctx.Err() != nil:
	case transient:
		log.FromContext(ctx).Info("No replica could be asked for the content, asking again", "reason", err.Error())
	case changed:
		log.FromContext(ctx).Error(err, "Reading catalog content failed", "serving", "last good snapshot", "hasSnapshot", s.tracker.current().Snapshot != nil)
		s.store.publisher.publish(ctx, s.key)
	}
}
