package catalogs

import (
	"context"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
)

// Settings returns the intervals and the limit of a store. Change them before the store follows a catalog.
func (s *Store) Settings() *settings { return &s.settings }

// Identify sets the UID of a CatalogSource.
func (k *ContentStore) Identify(ctx context.Context, name types.NamespacedName, uid types.UID) {
	k.identify(ctx, name, uid)
}

// Restore returns the kept content of a CatalogSource.
func (k *ContentStore) Restore(name types.NamespacedName) (*Snapshot, error) {
	s, _, err := k.restore(context.Background(), name, maxBytes)
	return s, err
}

// Fetch fetches the contents of existing CatalogSources that are not on disk.
func (k *ContentStore) Fetch(ctx context.Context, existing map[types.NamespacedName]types.UID) error {
	return k.startup.fetch(ctx, existing)
}

// Idle reports whether nothing is pending or being written.
func (k *ContentStore) Idle() bool {
	k.writer.mu.Lock()
	defer k.writer.mu.Unlock()
	return !k.writer.writing
}

// Held returns the number of contents in memory.
func (s *Store) Held() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return len(s.pool.contents)
}

// SnapshotReads returns the metric of the complete readings of a catalog.
func SnapshotReads(key types.NamespacedName) float64 {
	return testutil.ToFloat64(snapshotReads.WithLabelValues(key.Namespace, key.Name))
}
