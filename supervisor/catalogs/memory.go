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
	// silentInterval is how often a catalog is read whose server announces no digest. Only reading
	// can detect a change. OLM uses the same interval.
	silentInterval = 30 * time.Minute
	// readPause is the minimum time between two readings of a catalog. It limits the cost of a
	// catalog whose content changes, or seems to change, all the time.
	readPause = time.Second
	// settleTime is how long the store does not return to the previous content because another
	// replica still serves it.
	settleTime = time.Minute
)

// memory holds earlier answers of a catalog's servers.
type memory struct {
	// said is the last announcement of a server. origin is the server that the snapshot was read
	// from, at readAt.
	said   saying
	origin server
	readAt time.Time
	// begun is the start of the last reading.
	begun time.Time
	// left is the identity of the previous snapshot. leftAt is when it was replaced.
	left   identity
	leftAt time.Time
	// refused is content that cannot be used, found at refusedAt.
	refused   saying
	refusedAt time.Time
	// failing is when the first of the current series of failed requests happened; zero after a
	// success.
	failing time.Time
	// plain holds the servers that lack the extension API. It is valid while Summary.Joined equals
	// plainSince.
	plain      map[replicas.Endpoint]bool
	plainSince int
}

// identity identifies content by the digest that the server announces. Without one, it uses the
// digest of the content that was read.
type identity struct{ announced, digest string }

func identityOf(s *Snapshot) identity {
	if s == nil {
		return identity{}
	}
	return identity{announced: s.announced, digest: s.Digest}
}

// is reports whether both identify the same content.
func (i identity) is(other identity) bool {
	if i.announced != "" || other.announced != "" {
		return i.announced == other.announced
	}
	return i.digest != "" && i.digest == other.digest
}

// saying is an announcement: a server and the content that it serves.
type saying struct {
	by   server
	what identity
}

// plain reports whether a server is known to lack the extension API.
func (s *source) plain(at server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.plainSince == at.joined && s.memory.plain[at.replica]
}

// setPlain records that a server lacks the extension API. Another server at the same address may
// have it.
func (s *source) setPlain(at server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.memory
	if m.plain == nil || m.plainSince != at.joined {
		m.plain, m.plainSince = map[replicas.Endpoint]bool{}, at.joined
	}
	m.plain[at.replica] = true
}

// verdict is the action that follows from a server's announcement.
type verdict int

const (
	// toRead means that the content is not in memory and must be read.
	toRead verdict = iota
	// toTake means that the content is in memory and becomes current.
	toTake
	// toLeave means that the server still serves the previous content. It is ignored.
	toLeave
	// toRefuse means that the content is known to be unusable.
	toRefuse
)

// weigh decides what to do with a server's announcement. It returns the snapshot to use for toTake.
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

// weighSilent is weigh for a server that announces no digest. The caller holds the lock.
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

// recent reports whether an earlier result from one server also holds for another. The result must
// be young, no replica has begun to serve since, and both servers belong to one rollout.
func (*memory) recent(at server, young bool, from server) bool {
	return young && at.joined == from.joined && at.replica.Revision == from.replica.Revision
}

// isStale reports whether content is the previous content, served by a replica that a rollout has
// not replaced yet. Content is not stale in a rollback: the server itself has changed back, or its
// pod is newer than the pod that the current content was read from.
func (m *memory) isStale(at server, what identity, now time.Time, settle time.Duration) bool {
	wentBack := m.said.by == at && m.said.what != identity{} && !m.said.what.is(what)
	younger := at.replica.Created.After(m.origin.replica.Created)
	return m.left.is(what) && now.Sub(m.leftAt) < settle && !wentBack && !younger
}

// fetch reads content, unless another catalog of the namespace has read it already.
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

// rest waits until readPause has passed since the last reading.
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

// learn records the content of a server: a snapshot, an error, or neither if the content is
// ignored.
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

// fail records the error of a visit that reached no replica.
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

// passing reports whether an error can be ignored for now because content is available and replicas
// may be replaced soon. The caller holds the lock.
func (s *source) passing(err error) bool {
	m, now := &s.memory, s.store.clock.Now()
	if m.failing.IsZero() {
		m.failing = now
	}
	return s.state.Snapshot != nil && s.state.Err == nil && replicas.Elsewhere(err) && now.Sub(m.failing) < s.store.patience
}

// keep updates the state with a server's content. changed reports whether the state differs
// afterwards. reworded reports whether its error differs.
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

// whenAgain returns a phrase for when unusable content is read again.
func (s *source) whenAgain(announced string) string {
	if announced == "" {
		return fmt.Sprintf("when its server is restarted, and every %s", s.store.silent)
	}
	return "when it changes"
}

// replace sets the current snapshot. It returns false if nothing changed. The caller holds the
// lock.
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

// reword sets or clears the error of the state and reports whether it changed. While no replica
// serves, it does not clear the error, whatever a single call returns. The caller holds the lock.
func (s *source) reword(err error) bool {
	if sameFailure(err, s.state.Err) || (err == nil && s.state.Connectivity != connectivityReady) {
		return false
	}
	s.state.Err = err
	return true
}
