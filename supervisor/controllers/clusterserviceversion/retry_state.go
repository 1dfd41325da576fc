package clusterserviceversion

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// errorTimes holds since when each version has met only errors. It is not in the status, as most
// errors end before a user could read them.
type errorTimes struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// record returns how long a version has met errors, and records the begin of the first.
func (f *errorTimes) record(key types.NamespacedName, began, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since == nil {
		f.since = map[types.NamespacedName]time.Time{}
	}
	if _, known := f.since[key]; !known {
		f.since[key] = began
	}
	return now.Sub(f.since[key])
}

// clear drops the errors of a version.
func (f *errorTimes) clear(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, key)
}

// attempt identifies an installation: the applied objects, and the permissions.
type attempt struct {
	deployments string
	// access identifies the account of the OperatorGroup and its permissions; empty when the supervisor
	// uses its own.
	access string
	// webhooks is why the OperatorGroup does not allow the webhooks; empty when it does.
	webhooks string
}

// refusedAttempt is the last attempt that the API refused.
type refusedAttempt struct {
	attempt

	// changed is when the access last differed from that of the refusal before; zero when it never
	// did.
	changed time.Time
}

// refusedAttempts holds the last refused attempt to install each version. A different attempt need not
// wait. It is safe for concurrent use; the zero value is ready to use.
type refusedAttempts struct {
	mu    sync.Mutex
	known map[types.NamespacedName]refusedAttempt
}

// record records a refused attempt.
func (r *refusedAttempts) record(key types.NamespacedName, refused attempt, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[types.NamespacedName]refusedAttempt{}
	}
	before, known := r.known[key]
	next := refusedAttempt{attempt: refused, changed: before.changed}
	if known && before.access != refused.access {
		next.changed = now
	}
	r.known[key] = next
}

// last returns the last refusal of a version. For an unknown one, after a restart of the process,
// it records present as refused.
func (r *refusedAttempts) last(key types.NamespacedName, present attempt) refusedAttempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, known := r.known[key]; known {
		return found
	}
	if r.known == nil {
		r.known = map[types.NamespacedName]refusedAttempt{}
	}
	r.known[key] = refusedAttempt{attempt: present}
	return r.known[key]
}

// forget drops the refusal of a version that is installed or deleted.
func (r *refusedAttempts) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, key)
}
