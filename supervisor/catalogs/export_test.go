package catalogs

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
)

// SetProbeTimeout sets the timeout of a probe. Call it before the store follows a catalog.
func (s *Store) SetProbeTimeout(timeout time.Duration) { s.settings.probe = timeout }

// SetRereadInterval sets how often the store reads catalogs that announce no digest. Call it before
// the store follows a catalog.
func (s *Store) SetRereadInterval(interval time.Duration) { s.settings.reread = interval }

// SetSettleTime sets how long the store refuses to return to the previous content. Call it before
// the store follows a catalog.
func (s *Store) SetSettleTime(settle time.Duration) { s.settings.settle = settle }

// SetAnswerTimeout sets how long a catalog can stay without an answer before the store reports an
// error. Call it before the store follows a catalog.
func (s *Store) SetAnswerTimeout(timeout time.Duration) { s.settings.answer = timeout }

// SetRestoreDelay sets how long the store waits for content before it uses the content on disk. Call it before the
// store follows a catalog.
func (s *Store) SetRestoreDelay(delay time.Duration) { s.settings.restore = delay }

// Identify sets the UID of a CatalogSource.
func (k *ContentKeeper) Identify(ctx context.Context, name types.NamespacedName, uid types.UID) {
	k.identify(ctx, name, uid)
}

// Restore returns the kept content of a CatalogSource.
func (k *ContentKeeper) Restore(name types.NamespacedName) (*Snapshot, error) {
	s, _, err := k.restore(context.Background(), name, maxBytes)
	return s, err
}

// Fetch fetches the contents of existing CatalogSources that are not on disk.
func (k *ContentKeeper) Fetch(ctx context.Context, existing map[types.NamespacedName]types.UID) error {
	return k.startup.fetch(ctx, existing)
}

// Idle reports whether nothing is pending or being written.
func (k *ContentKeeper) Idle() bool {
	k.writer.mu.Lock()
	defer k.writer.mu.Unlock()
	return !k.writer.writing
}

// SetLimit sets the maximum size of a snapshot, in bytes. Call it before the store follows a
// catalog.
func (s *Store) SetLimit(limit int64) { s.settings.limit = limit }

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
