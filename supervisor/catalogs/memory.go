package catalogs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/replicas"
)

const (
	// silentInterval is how often the content of a catalog is read whose server
	// cannot say what it serves. Nothing else would ever tell; it is what OLM does.
	silentInterval = 30 * time.Minute
	// readPause is the least time between two readings of a catalog, so that one
	// that changes all the time, or says so, costs others nothing.
	readPause = time.Second
	// settleTime is how long a content that was just left is not gone back to
	// because another replica still serves it.
	settleTime = time.Minute
)

// memory is what is remembered of the servers of a catalog.
type memory struct {
	// said is what a server said last, and origin the one that the snapshot was
	// read from, at readAt.
	said   saying
	origin server
	readAt time.Time
	// begun is when a reading was begun last.
	begun time.Time
	// left is the snapshot before, and leftAt when it was left.
	left   identity
	leftAt time.Time
	// refused is a content that cannot be used.
	refused   saying
	refusedAt time.Time
	// failing is since when no replica could be asked; zero when the last one could.
	failing time.Time
	// plain are the servers that lack the extension API, of those that have served
	// since plainSince.
	plain      map[replicas.Endpoint]bool
	plainSince int
}

// identity tells contents apart: by the word of the server, or by the digest of
// what was read from one that does not say.
type identity struct{ announced, digest string }

func identityOf(s *Snapshot) identity {
	if s == nil {
		return identity{}
	}
	return identity{announced: s.announced, digest: s.Digest}
}

// is says whether both are the same content.
func (i identity) is(other identity) bool {
	if i.announced != "" || other.announced != "" {
		return i.announced == other.announced
	}
	return i.digest != "" && i.digest == other.digest
}

// saying is what a server says that it serves.
type saying struct {
	by   server
	what identity
}

// plain says whether a server is known to lack the extension API.
func (s *source) plain(at server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.plainSince == at.joined && s.memory.plain[at.replica]
}

// setPlain notes that a server lacks the extension API. Another one at the same
// address may have it.
func (s *source) setPlain(at server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.memory
	if m.plain == nil || m.plainSince != at.joined {
		m.plain, m.plainSince = map[replicas.Endpoint]bool{}, at.joined
	}
	m.plain[at.replica] = true
}

// verdict is what to do about what a server says.
type verdict int

const (
	// toRead is what to do about a content that is not held.
	toRead verdict = iota
	// toTake is what to do about one that is held.
	toTake
	// toLeave is what to do about one that a server has that is late.
	toLeave
	// toRefuse is what to do about one that is known not to be of use.
	toRefuse
)

// weigh says what to do about what a server says that it serves, with the snapshot
// that is to be taken.
func (s *source) weigh(at server, announced string) (*Snapshot, verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if announced == "" {
		return s.weighSilent(at)
	}
	m, held, what := &s.memory, s.state.Snapshot, identity{announced: announced}
	switch {
	case m.refused.what == what && m.refused.by == at:
		return nil, toRefuse
	case held != nil && held.announced == announced:
		return held, toTake
	case m.isStale(at, what, s.store.clock.Now(), s.store.settle):
		return nil, toLeave
	}
	if shared := s.store.pool.find(s.key.Namespace, announced); shared != nil {
		return shared, toTake
	}
	return nil, toRead
}

// weighSilent does it for a server that does not say what it serves. The lock is
// held.
func (s *source) weighSilent(at server) (*Snapshot, verdict) {
	m, held, now := &s.memory, s.state.Snapshot, s.store.clock.Now()
	own := held != nil && !s.state.inherited && held.announced == ""
	switch {
	case m.recent(at, now.Sub(m.refusedAt) < s.store.silent, m.refused.by):
		return nil, toRefuse
	case own && m.recent(at, now.Sub(m.readAt) < s.store.silent, m.origin):
		return held, toTake
	default:
		return nil, toRead
	}
}

// recent says whether what was read from one server need not be read from another:
// it is not long ago, nothing has begun to serve since, and both are of one
// roll-out.
func (*memory) recent(at server, young bool, from server) bool {
	return young && at.joined == from.joined && at.replica.Revision == from.replica.Revision
}

// isStale says whether a content is the one that was just left, so that a server
// that still has it is only late, as during a roll-out. A server that itself went
// back to it is not, nor a replica that was made after the one that the present
// content was read from: that is a rollback.
func (m *memory) isStale(at server, what identity, now time.Time, settle time.Duration) bool {
	wentBack := m.said.by == at && m.said.what != identity{} && !m.said.what.is(what)
	younger := at.replica.Created.After(m.origin.replica.Created)
	return m.left.is(what) && now.Sub(m.leftAt) < settle && !wentBack && !younger
}

// fetch reads a content, or finds that another catalog of the namespace did so
// meanwhile.
func (s *source) fetch(ctx context.Context, announced string, read func(ctx context.Context) (*Snapshot, error)) (*Snapshot, error) {
	s.rest(ctx)
	leave := s.store.enter(ctx)
	defer leave()
	if held := s.store.pool.find(s.key.Namespace, announced); held != nil {
		return held, nil
	}
	begin := s.store.clock.Now()
	next, err := read(ctx)
	if err != nil {
		return nil, err
	}
	next = s.store.pool.add(s.key.Namespace, next)
	log.FromContext(ctx).V(1).Info("Read all of the catalog", "digest", next.Digest, "duration", s.store.clock.Since(begin).String())
	return next, nil
}

// rest waits until the catalog may be read again.
func (s *source) rest(ctx context.Context) {
	s.mu.Lock()
	wait := readPause - s.store.clock.Since(s.memory.begun)
	s.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.memory.begun = s.store.clock.Now()
	s.mu.Unlock()
}

// learn takes what a server serves: a snapshot, one that is not to be used because
// of err, or, without both, what is left alone.
func (s *source) learn(ctx context.Context, from server, announced string, next *Snapshot, err error) {
	if ctx.Err() != nil {
		return
	}
	changed, reworded := s.keep(from, announced, next, err)
	logger := log.FromContext(ctx)
	switch {
	case err != nil && reworded:
		logger.Error(err, "Reading catalog content failed", "serving", "last good snapshot", "hasSnapshot", s.current().Snapshot != nil)
	case next != nil && changed:
		logger.Info("Catalog content", "digest", next.Digest, "packages", len(next.Content.Packages()), "bytes", next.Bytes())
	}
	if changed {
		s.store.count()
		s.store.publish(ctx, s.key)
	}
}

// fail takes the error of a replica that could not be asked.
func (s *source) fail(ctx context.Context, err error) {
	s.mu.Lock()
	passing := s.passing(err)
	reworded := !passing && s.reword(err)
	s.mu.Unlock()
	if passing && ctx.Err() == nil {
		log.FromContext(ctx).Info("No replica could be asked for the content, asking again", "reason", err.Error())
	}
	if ctx.Err() == nil && reworded {
		log.FromContext(ctx).Error(err, "Reading catalog content failed", "serving", "last good snapshot", "hasSnapshot", s.current().Snapshot != nil)
		s.store.publish(ctx, s.key)
	}
}

// passing says whether an error may be over in a moment, and nobody is worse off
// meanwhile: there is content, and the replicas that went away are replaced, or found
// to be gone, which is told then. The lock is held.
func (s *source) passing(err error) bool {
	m, now := &s.memory, s.store.clock.Now()
	if m.failing.IsZero() {
		m.failing = now
	}
	return s.state.Snapshot != nil && s.state.Err == nil && replicas.Elsewhere(err) && now.Sub(m.failing) < s.store.patience
}

// keep takes into the state what a server serves. changed says whether that is
// news, reworded whether it is so because of the error or its end.
func (s *source) keep(from server, announced string, next *Snapshot, err error) (changed, reworded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, old, now := &s.memory, s.state.Snapshot, s.store.clock.Now()
	what := identity{announced: announced}
	if next != nil {
		what = identityOf(next)
	}
	if errors.Is(err, errUnusable) {
		m.refused, m.refusedAt = saying{by: from, what: what}, now
		err = fmt.Errorf("%w; it is read again %s", err, s.whenAgain(announced))
	}
	stale := next != nil && !what.is(identityOf(old)) && m.isStale(from, what, now, s.store.settle)
	m.said, m.failing = saying{by: from, what: what}, time.Time{}
	reworded = s.reword(err)
	if err != nil || next == nil || stale {
		return reworded, reworded
	}
	if next != old {
		m.origin, m.readAt = from, now
	}
	s.state.ReadAt = now
	return s.replace(next, now) || reworded, reworded
}

// whenAgain says when a content that cannot be used is read again.
func (s *source) whenAgain(announced string) string {
	if announced == "" {
		return fmt.Sprintf("when its server is restarted, and every %s", s.store.silent)
	}
	return "when it changes"
}

// replace puts a snapshot in the place of the one before. False when both are the
// same. The lock is held.
func (s *source) replace(next *Snapshot, now time.Time) bool {
	old, inherited := s.state.Snapshot, s.state.inherited
	s.state.inherited = false
	if old != nil && old.Digest == next.Digest && old.announced == next.announced {
		return inherited
	}
	if old != nil && !inherited {
		s.memory.left, s.memory.leftAt = identityOf(old), now
	}
	s.state.Snapshot = next
	return true
}

// reword takes an error, or its end. True when that is news. Why nothing serves
// stays true until something does, whatever a single call says. The lock is held.
func (s *source) reword(err error) bool {
	if sameFailure(err, s.state.Err) || (err == nil && s.state.Connectivity != connectivityReady) {
		return false
	}
	s.state.Err = err
	return true
}
