package catalogs

import (
	"time"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// serverHistory holds earlier answers of a catalog's servers.
type serverHistory struct {
	// last is the last announcement of a server. origin is the server that the snapshot was read
	// from, at readAt.
	last   announcement
	origin server
	readAt time.Time
	// connected is when the current connection was established.
	connected time.Time
	// previous identifies the previous snapshot. replacedAt is when it was replaced.
	previous   identity
	replacedAt time.Time
	// unusable is content that cannot be used, found at unusableAt.
	unusable   announcement
	unusableAt time.Time
	// failingSince is when the first of the current series of failed requests happened; zero after a
	// success.
	failingSince time.Time
	// lackingExtension holds the servers that lack the extension API. It is valid while Summary.Epoch equals
	// lackingEpoch.
	lackingExtension map[replicas.Endpoint]bool
	lackingEpoch     int
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

// announcement is a server and the content that it announces.
type announcement struct {
	by      server
	content identity
}

// recent reports whether an earlier result from one server also holds for another. The result must
// be young, no replica has begun to serve since, and both servers belong to one rollout.
func (*serverHistory) recent(at server, young bool, from server) bool {
	return young && at.epoch == from.epoch && at.replica.Revision == from.replica.Revision
}

// isStale reports whether content is the previous content, served by a replica that a rollout has
// not replaced yet. Content is not stale in a rollback: the server itself has changed back, or its
// pod is newer than the pod that the current content was read from.
func (h *serverHistory) isStale(at server, content identity, now time.Time, settle time.Duration) bool {
	wentBack := h.last.by == at && h.last.content != identity{} && !h.last.content.is(content)
	younger := at.replica.Created.After(h.origin.replica.Created)
	return h.previous.is(content) && now.Sub(h.replacedAt) < settle && !wentBack && !younger
}

// fail records a failure at a time, and returns for how long there have been only failures.
func (h *serverHistory) fail(now time.Time) time.Duration {
	if h.failingSince.IsZero() {
		h.failingSince = now
	}
	return now.Sub(h.failingSince)
}
