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

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// restoreDelay is how long a store waits for the content of a catalog before it uses the content on disk. A catalog
// that answers is read within this time, so that a restarted supervisor does not resolve from older content.
const restoreDelay = 2 * time.Second

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

// ContentStore keeps the last known content of catalogs on disk. A nil ContentStore keeps nothing. Its methods are safe
// for concurrent use.
type ContentStore struct {
	cache   ContentCache
	writer  *contentWriter
	startup *contentStartup

	mu    sync.Mutex
	known map[types.NamespacedName]keptContent
}

// keptContent is the content of one CatalogSource.
type keptContent struct {
	uid types.UID
	// digest is the digest of the snapshot that was written last; empty before the first.
	digest string
}

// NewContentStore returns a ContentStore that uses a cache.
func NewContentStore(cache ContentCache) *ContentStore {
	k := &ContentStore{cache: cache, startup: &contentStartup{cache: cache}, known: map[types.NamespacedName]keptContent{}}
	k.writer = &contentWriter{cache: cache, failed: k.forgetDigest, pending: map[catalogID]*content.Catalog{}}
	return k
}

// UsePeer sets from where contents are fetched at the start that are not on disk. Call it before the manager starts.
func (k *ContentStore) UsePeer(peer ContentReader) {
	if k != nil {
		k.startup.peer = peer
	}
}

// Open opens the file of a content, for another supervisor.
func (k *ContentStore) Open(name types.NamespacedName, uid types.UID) (*os.File, error) {
	if k == nil {
		return nil, fs.ErrNotExist
	}
	return k.cache.Open(name, uid) //nolint:wrapcheck // says what was opened
}

// Ready returns an error while contents are being fetched: the supervisor that has them must not stop before.
func (k *ContentStore) Ready() error {
	if k == nil {
		return nil
	}
	return k.startup.ready()
}

// identify sets the UID of a CatalogSource. It reports whether the UID replaces another one. The content under the
// other UID is removed.
func (k *ContentStore) identify(ctx context.Context, name types.NamespacedName, uid types.UID) (replaced bool) {
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
		k.writer.enqueue(ctx, catalogID{name, old.uid}, nil)
	}
	return found
}

// keep writes a snapshot, unless it is already written.
func (k *ContentStore) keep(ctx context.Context, name types.NamespacedName, s *Snapshot) {
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
	k.writer.enqueue(ctx, catalogID{name, kept.uid}, s.Content)
}

// forget removes the content of a CatalogSource that was deleted.
func (k *ContentStore) forget(ctx context.Context, name types.NamespacedName) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept, found := k.known[name]; found {
		delete(k.known, name)
		k.writer.enqueue(ctx, catalogID{name, kept.uid}, nil)
	}
}

// forgetDigest records that the content of a CatalogSource is not on disk, so that it is written when it is read again.
func (k *ContentStore) forgetDigest(key catalogID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept, found := k.known[key.NamespacedName]; found && kept.uid == key.uid {
		k.known[key.NamespacedName] = keptContent{uid: key.uid}
	}
}

// wait waits until nothing is being written.
func (k *ContentStore) wait() {
	if k != nil {
		k.writer.work.Wait()
	}
}

// restore reads the kept content of a CatalogSource. It waits for content from another supervisor. The snapshot is nil
// if there is none. limit is the maximum size of the snapshot in bytes.
func (k *ContentStore) restore(ctx context.Context, name types.NamespacedName, limit int64) (s *Snapshot, writtenAt time.Time, err error) {
	k.mu.Lock()
	kept, found := k.known[name]
	k.mu.Unlock()
	if !found {
		return nil, time.Time{}, nil
	}
	k.startup.await(ctx, name, kept.uid)
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
