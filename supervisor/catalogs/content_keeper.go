package catalogs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// restoreDelay is how long a store waits for the content of a catalog before it uses the content on disk. A catalog
// that answers is read within this time, so that a restarted supervisor does not resolve from older content.
const restoreDelay = 2 * time.Second

// After each write, the keeper rests for writeRest times as long as the write took, and for at most maxWriteRest.
// Catalogs whose content changes all the time then leave the disk to others.
const (
	writeRest    = 10
	maxWriteRest = time.Minute
)

// ContentCache holds the contents of catalogs on disk. Each belongs to the CatalogSource with a name and a UID.
type ContentCache interface { //nolint:interfacebloat // one file needs all of them
	// Write replaces a content.
	Write(ctx context.Context, name types.NamespacedName, uid types.UID, catalog *content.Catalog) error
	// Read passes the messages of a content to functions, and returns when the content was written. The error is
	// fs.ErrNotExist if there is none.
	Read(name types.NamespacedName, uid types.UID, bundle func(*api.Bundle) error, pkg func(*api.Package) error) (time.Time, error)
	// Open opens the file of a content. The error is fs.ErrNotExist if there is none.
	Open(name types.NamespacedName, uid types.UID) (*os.File, error)
	// Receive stores the file of a content, unless there is one.
	Receive(name types.NamespacedName, uid types.UID, from io.Reader) error
	// Remove removes a content.
	Remove(name types.NamespacedName, uid types.UID) error
	// Retain removes all contents except those of existing CatalogSources.
	Retain(existing map[types.NamespacedName]types.UID, now time.Time) error
}

// catalogID identifies a CatalogSource. One with the same name that was created again has another UID.
type catalogID struct {
	types.NamespacedName

	uid types.UID
}

// ContentKeeper keeps the last known content of catalogs on disk. It writes in the background, one content at a time.
// A nil ContentKeeper keeps nothing. Its methods are safe for concurrent use.
type ContentKeeper struct {
	cache ContentCache
	work  sync.WaitGroup
	// peer reads contents from another supervisor; nil for none. fetched is closed when missing contents were fetched;
	// nil if they never are.
	peer    ContentReader
	fetched chan struct{}

	mu      sync.Mutex
	known   map[types.NamespacedName]keptContent
	pending map[catalogID]*content.Catalog // nil for content to remove
	writing bool
}

// keptContent is the content of one CatalogSource.
type keptContent struct {
	uid types.UID
	// digest is the digest of the snapshot that was written last; empty before the first.
	digest string
}

// NewContentKeeper returns a ContentKeeper that uses a cache.
func NewContentKeeper(cache ContentCache) *ContentKeeper {
	return &ContentKeeper{cache: cache, known: map[types.NamespacedName]keptContent{}, pending: map[catalogID]*content.Catalog{}}
}

// identify sets the UID of a CatalogSource. It reports whether the UID replaces another one. The content under the
// other UID is removed.
func (k *ContentKeeper) identify(ctx context.Context, name types.NamespacedName, uid types.UID) (replaced bool) {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	old, found := k.known[name]
	if found && old.uid == uid {
		return false
	}
	k.known[name] = keptContent{uid: uid}
	if found {
		k.enqueue(ctx, catalogID{name, old.uid}, nil)
	}
	return found
}

// keep writes a snapshot, unless it is already written.
func (k *ContentKeeper) keep(ctx context.Context, name types.NamespacedName, s *Snapshot) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, found := k.known[name]
	if !found || kept.digest == s.Digest {
		return
	}
	k.known[name] = keptContent{uid: kept.uid, digest: s.Digest}
	k.enqueue(ctx, catalogID{name, kept.uid}, s.Content)
}

// forget removes the content of a CatalogSource that was deleted.
func (k *ContentKeeper) forget(ctx context.Context, name types.NamespacedName) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept, found := k.known[name]; found {
		delete(k.known, name)
		k.enqueue(ctx, catalogID{name, kept.uid}, nil)
	}
}

// enqueue replaces the pending content of a key. A goroutine writes pending contents. The caller holds the lock.
func (k *ContentKeeper) enqueue(ctx context.Context, key catalogID, next *content.Catalog) {
	k.pending[key] = next
	if !k.writing {
		k.writing = true
		k.work.Go(func() { k.writePending(ctx) })
	}
}

// writePending writes and removes contents until none is pending.
func (k *ContentKeeper) writePending(ctx context.Context) {
	for {
		key, next, ok := k.dequeue()
		switch {
		case !ok:
			return
		case next == nil:
			if err := k.cache.Remove(key.NamespacedName, key.uid); err != nil {
				log.FromContext(ctx).Error(err, "Cannot remove the content of a catalog from disk", "catalogSource", key.String())
			}
		default:
			begin := time.Now()
			if err := k.cache.Write(ctx, key.NamespacedName, key.uid, next); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Cannot keep the content of a catalog on disk", "catalogSource", key.String())
				k.forgetDigest(key)
				continue
			}
			took := time.Since(begin)
			log.FromContext(ctx).V(1).Info("Kept the content of a catalog on disk", "catalogSource", key.String(), "duration", took.String())
			pause(ctx, min(writeRest*took, maxWriteRest))
		}
	}
}

// forgetDigest records that the content of a CatalogSource is not on disk, so that it is written when it is read again.
func (k *ContentKeeper) forgetDigest(key catalogID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept, found := k.known[key.NamespacedName]; found && kept.uid == key.uid {
		k.known[key.NamespacedName] = keptContent{uid: key.uid}
	}
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// dequeue returns a pending content. ok is false if there is none; the caller then ends.
func (k *ContentKeeper) dequeue() (key catalogID, next *content.Catalog, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, next = range k.pending {
		delete(k.pending, key)
		return key, next, true
	}
	k.writing = false
	return catalogID{}, nil, false
}

// wait waits until nothing is being written.
func (k *ContentKeeper) wait() {
	if k != nil {
		k.work.Wait()
	}
}

// restore reads the kept content of a CatalogSource. It waits for content from another supervisor. The snapshot is nil
// if there is none. limit is the maximum size of the snapshot in bytes.
func (k *ContentKeeper) restore(ctx context.Context, name types.NamespacedName, limit int64) (s *Snapshot, writtenAt time.Time, err error) {
	k.mu.Lock()
	kept, found := k.known[name]
	k.mu.Unlock()
	if !found {
		return nil, time.Time{}, nil
	}
	k.awaitFetched(ctx, name, kept.uid)
	builder := newSnapshotBuilder(limit)
	writtenAt, err = k.cache.Read(name, kept.uid, builder.addListed, builder.addPackage)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, err //nolint:wrapcheck // says what was read
	default:
		return builder.snapshot(""), writtenAt, nil
	}
}
