package catalogs

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// tracker holds the state of a catalog, and decides from the answers of its servers what to read. Its
// methods are safe for concurrent use.
type tracker struct {
	namespace, address string
	settings           *settings
	clock              clock.PassiveClock
	pool               *snapshotPool

	mu      sync.Mutex
	state   State
	history serverHistory
}

func (t *tracker) current() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// connected records the connectivity and, if it changed, the reason why no replica serves. The reason
// stays until a replica serves again.
func (t *tracker) connected(summary replicas.Summary) (changed bool, failure error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	observed := summary.Connectivity.String()
	changed = t.state.Connectivity != observed
	if changed && t.state.Connectivity == connectivityReady {
		t.state.Lost, t.state.LostTo = t.clock.Now(), observed
	}
	t.state.Connectivity = observed
	t.history.connected = summary.Since
	if observed == connectivityReady && t.state.LastConnect.IsZero() && t.state.Snapshot == nil {
		t.state.LastConnect = summary.Since
	}
	if summary.Err == nil {
		if observed == connectivityReady && errors.Is(t.state.Err, ErrNotConnected) {
			t.state.Err, changed = nil, true
		}
		return changed, nil
	}
	problem := "nothing answers at"
	if _, is := errors.AsType[*dialtls.Error](summary.Err); is {
		problem = "there is no secure connection to"
	}
	failure = fmt.Errorf("%w: %s %s: %w", ErrNotConnected, problem, t.address, summary.Err)
	if sameFailure(failure, t.state.Err) {
		return changed, nil
	}
	t.state.Err = failure
	return changed, failure
}

// timeOut sets an error if no replica has answered and no other error is known. Otherwise a catalog whose
// pods never get an address would stay without a report. reading is true while the content is being read,
// which has its own timeouts.
func (t *tracker) timeOut() (failed, reading bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if (t.state.Snapshot != nil && !t.state.Inherited) || t.state.Err != nil {
		return false, false
	}
	if t.state.Connectivity == connectivityReady {
		return false, true
	}
	t.state.Err = fmt.Errorf("%w: no replica of it answers yet at %s", ErrNotConnected, t.address)
	return true, false
}

// restore sets a snapshot that was kept on disk, unless there is one already. The next content that is read replaces it.
func (t *tracker) restore(kept *Snapshot, readAt time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Snapshot != nil {
		return false
	}
	t.state.Snapshot, t.state.ReadAt, t.state.Inherited = kept, readAt, true
	return true
}

// lacksExtension reports whether a server is known to lack the extension API.
func (t *tracker) lacksExtension(at server) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.history.lackingEpoch == at.epoch && t.history.lackingExtension[at.replica]
}

// setLacksExtension records that a server lacks the extension API. Another server at the same address may
// have it.
func (t *tracker) setLacksExtension(at server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := &t.history
	if h.lackingExtension == nil || h.lackingEpoch != at.epoch {
		h.lackingExtension, h.lackingEpoch = map[replicas.Endpoint]bool{}, at.epoch
	}
	h.lackingExtension[at.replica] = true
}

// action is the action that follows from a server's announcement.
type action int

const (
	// readContent means that the content is not in memory and must be read.
	readContent action = iota
	// useCached means that the content is in memory and becomes current.
	useCached
	// ignore means that the server still serves the previous content. It is ignored.
	ignore
	// reject means that the content is known to be unusable.
	reject
)

// decide returns what to do with a server's announcement, and the snapshot to use for useCached.
func (t *tracker) decide(at server, announced string) (*Snapshot, action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if announced == "" {
		return t.decideUnannounced(at)
	}
	h, cached, content := &t.history, t.state.Snapshot, identity{announced: announced}
	switch {
	case h.unusable.content == content && h.unusable.by == at:
		return nil, reject
	case cached != nil && cached.announced == announced:
		return cached, useCached
	case h.isStale(at, content, t.clock.Now(), t.settings.Settle):
		return nil, ignore
	}
	if shared := t.pool.find(t.namespace, announced); shared != nil {
		return shared, useCached
	}
	return nil, readContent
}

// decideUnannounced is decide for a server that announces no digest. The caller holds the lock.
func (t *tracker) decideUnannounced(at server) (*Snapshot, action) {
	h, cached, now := &t.history, t.state.Snapshot, t.clock.Now()
	own := cached != nil && !t.state.Inherited && cached.announced == ""
	switch {
	case h.recent(at, now.Sub(h.unusableAt) < t.settings.Reread, h.unusable.by):
		return nil, reject
	case own && h.recent(at, now.Sub(h.readAt) < t.settings.Reread, h.origin):
		return cached, useCached
	default:
		return nil, readContent
	}
}

// failed records the error of a session that reached no replica. changed reports whether the error of the
// state differs afterwards. transient reports whether the error is ignored for now.
func (t *tracker) failed(err error) (changed, transient bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	failing := t.history.fail(t.clock.Now())
	if t.state.Snapshot != nil && t.state.Err == nil && replicas.IsReplicaFailure(err) && failing < t.settings.Answer {
		// Content is available, and replicas may be replaced soon.
		return false, true
	}
	advanced := t.advance(t.history.connected)
	return t.setError(err) || advanced, false
}

// advance moves LastConnect to a later time. It reports whether LastConnect changed. The caller holds
// the lock.
func (t *tracker) advance(to time.Time) bool {
	if !to.After(t.state.LastConnect) {
		return false
	}
	t.state.LastConnect = to
	return true
}

// record updates the state with a server's content. changed reports whether the state differs
// afterwards. failed reports whether its error differs.
func (t *tracker) record(from server, announced string, next *Snapshot, err error) (changed, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, old, now := &t.history, t.state.Snapshot, t.clock.Now()
	content := identity{announced: announced}
	if next != nil {
		content = identityOf(next)
	}
	if errors.Is(err, errUnusable) {
		h.unusable, h.unusableAt = announcement{by: from, content: content}, now
		err = fmt.Errorf("%w; the supervisor reads it again %s", err, rereadPhrase(announced, t.settings.Reread))
	}
	stale := next != nil && !content.is(identityOf(old)) && h.isStale(from, content, now, t.settings.Settle)
	h.last, h.failingSince = announcement{by: from, content: content}, time.Time{}
	failed = t.setError(err)
	if stale || (err == nil && next == nil) {
		return failed, failed
	}
	changed = t.advance(h.connected) || failed
	if err == nil {
		changed = t.confirm(from, next, now) || changed
	}
	return changed, failed
}

// confirm records that a server serves a snapshot, and reports whether the state changed. A server of
// another revision begins a new serving, also of the same content. The caller holds the lock.
func (t *tracker) confirm(from server, next *Snapshot, now time.Time) bool {
	if next != t.state.Snapshot {
		t.history.origin, t.history.readAt = from, now
	}
	t.state.ReadAt = now
	changed := t.setSnapshot(next, now)
	old, revision := t.state.Revision, from.replica.Revision
	t.state.Revision = revision
	if old != "" && revision != old {
		t.advance(now)
	}
	return changed || revision != old
}

// rereadPhrase returns a phrase for when unusable content is read again. interval is how often content without a digest
// is read.
func rereadPhrase(announced string, interval time.Duration) string {
	if announced == "" {
		return fmt.Sprintf("when its server is restarted, and every %s", interval)
	}
	return "when it changes"
}

// setSnapshot sets the current snapshot. It returns false if nothing changed. The caller holds the
// lock.
func (t *tracker) setSnapshot(next *Snapshot, now time.Time) bool {
	old, inherited := t.state.Snapshot, t.state.Inherited
	t.state.Inherited = false
	if old != nil && old.Digest == next.Digest && old.announced == next.announced {
		return inherited
	}
	if old != nil && !inherited {
		t.history.previous, t.history.replacedAt = identityOf(old), now
	}
	if old != nil {
		t.advance(now)
	}
	if old != nil && old.Digest != next.Digest {
		t.state.BrokenChannels = nil
	}
	t.state.Snapshot = next
	return true
}

// setError sets or clears the error of the state and reports whether it changed. While no replica
// serves, it does not clear the error, whatever a single call returns. The caller holds the lock.
func (t *tracker) setError(err error) bool {
	if sameFailure(err, t.state.Err) || (err == nil && t.state.Connectivity != connectivityReady) {
		return false
	}
	t.state.Err = err
	return true
}

// setBrokenChannels records the broken channels of a snapshot. It returns false if nothing changes.
func (t *tracker) setBrokenChannels(of *Snapshot, channels []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Snapshot != of || slices.Equal(t.state.BrokenChannels, channels) {
		return false
	}
	t.state.BrokenChannels = channels
	return true
}
