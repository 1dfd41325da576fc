package packagemanifest

import (
	"sync"
	"time"
)

const (
	// readers is the number of catalogs that are read at once.
	readers = 3
	// globalReaders is the same for catalogs in the global namespace, and namespaceReaders for those in any other one.
	// Slow catalogs of one namespace thus do not delay those of others.
	globalReaders    = 2
	namespaceReaders = 1
	// turnInterval is how often a catalog asks for its turn.
	turnInterval = 500 * time.Millisecond
	// turnLifetime is how long a namespace that does not ask keeps its place.
	turnLifetime = 4 * turnInterval
)

// turns decides which catalogs are read. Namespaces take turns, and the one that waited longest is first. It is safe for
// concurrent use.
type turns struct {
	global string

	mu      sync.Mutex
	reading map[string]int
	waiting map[string]waitingNamespace
}

// waitingNamespace is since when a namespace waits, and when it last asked.
type waitingNamespace struct{ since, asked time.Time }

// newTurns returns turns without readers. Catalogs in the namespace global serve every namespace.
func newTurns(global string) *turns {
	return &turns{global: global, reading: map[string]int{}, waiting: map[string]waitingNamespace{}}
}

// begin reports whether a catalog in a namespace may be read now. Call end after the reading.
func (t *turns) begin(namespace string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isFull(namespace) {
		return false
	}
	own, waits := t.waiting[namespace]
	if !waits {
		own.since = now
	}
	free := readers
	for _, n := range t.reading {
		free -= n
	}
	for other, w := range t.waiting {
		if now.Sub(w.asked) > turnLifetime {
			delete(t.waiting, other)
		} else if other != namespace && w.since.Before(own.since) && !t.isFull(other) {
			free--
		}
	}
	if free <= 0 {
		t.waiting[namespace] = waitingNamespace{since: own.since, asked: now}
		return false
	}
	delete(t.waiting, namespace)
	t.reading[namespace]++
	return true
}

// end ends a reading.
func (t *turns) end(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading[namespace]--
	if t.reading[namespace] == 0 {
		delete(t.reading, namespace)
	}
}

// isFull reports whether a namespace has as many readers as it may have.
func (t *turns) isFull(namespace string) bool {
	if namespace == t.global {
		return t.reading[namespace] >= globalReaders
	}
	return t.reading[namespace] >= namespaceReaders
}
