package catalogs

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// reflectorSet holds the reflectors of the catalogs that a store follows. Its methods are safe for
// concurrent use.
type reflectorSet struct {
	running sync.WaitGroup

	mu      sync.Mutex
	byKey   map[types.NamespacedName]*reflector
	network *replicas.Network // created for the first hosted catalog
}

// find returns the reflector of a key; nil if there is none.
func (r *reflectorSet) find(key types.NamespacedName) *reflector {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[key]
}

// put updates the reflector of a key, or replaces it with a new one if it does not connect to the target.
// It reports whether the new reflector replaces another one, or uses other certificates.
func (r *reflectorSet) put(key types.NamespacedName, to target, endpoints []replicas.Endpoint,
	create func(old *reflector, key types.NamespacedName, to target, network *replicas.Network) *reflector,
) (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.byKey[key]
	if old != nil && old.connects(to) {
		old.set.Update(endpoints)
		return old.update(to.security), nil
	}
	if to.hosted && r.network == nil {
		if r.network, err = replicas.NewNetwork(); err != nil {
			return false, err //nolint:wrapcheck // the caller names the catalog
		}
	}
	next := create(old, key, to, r.network)
	r.byKey[key] = next
	next.set.Update(endpoints)
	_, _ = next.tracker.connected(next.set.Summary()) // the caller publishes it
	r.running.Go(func() { next.run(next.ctx) })
	r.running.Go(func() { next.restore(next.ctx) })
	return old != nil, nil
}

// remove stops the reflector of a key.
func (r *reflectorSet) remove(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.byKey[key]; old != nil {
		old.cancel()
		delete(r.byKey, key)
	}
}

// stop stops all reflectors, waits for them, and closes the connections to replicas.
func (r *reflectorSet) stop() error {
	r.mu.Lock()
	for _, followed := range r.byKey {
		followed.cancel()
	}
	clear(r.byKey)
	r.mu.Unlock()
	r.running.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.network == nil {
		return nil
	}
	if err := r.network.Close(); err != nil {
		return fmt.Errorf("closing the connections to replicas: %w", err)
	}
	return nil
}

// recordSnapshots updates the snapshot metrics.
func (r *reflectorSet) recordSnapshots() {
	r.mu.Lock()
	defer r.mu.Unlock()
	distinct, bytes := map[*sharedContent]bool{}, int64(0)
	for key, followed := range r.byKey {
		snapshot := followed.tracker.current().Snapshot
		if snapshot == nil || snapshot.shared == nil {
			continue
		}
		snapshotBytes.WithLabelValues(key.Namespace, key.Name).Set(float64(snapshot.Bytes()))
		if !distinct[snapshot.shared] {
			distinct[snapshot.shared] = true
			bytes += snapshot.shared.bytes()
		}
	}
	snapshotCount.Set(float64(len(distinct)))
	snapshotTotal.Set(float64(bytes))
}
