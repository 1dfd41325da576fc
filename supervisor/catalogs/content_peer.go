package catalogs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// fetchTimeout limits how long a starting supervisor reads contents from another one. It is not ready before.
const fetchTimeout = 10 * time.Second

// ContentReader opens the file of a content of another supervisor. The error is fs.ErrNotExist if that has none.
type ContentReader func(ctx context.Context, name types.NamespacedName, uid types.UID) (io.ReadCloser, error)

// errFetching is the reason why a supervisor is not ready.
var errFetching = errors.New("contents of catalogs are being read from another supervisor")

// UsePeer sets from where contents are fetched at the start that are not on disk. Call it before the manager starts.
func (k *ContentKeeper) UsePeer(peer ContentReader) {
	if k != nil {
		k.peer = peer
	}
}

// Open opens the file of a content, for another supervisor.
func (k *ContentKeeper) Open(name types.NamespacedName, uid types.UID) (*os.File, error) {
	if k == nil {
		return nil, fs.ErrNotExist
	}
	return k.cache.Open(name, uid) //nolint:wrapcheck // says what was opened
}

// Ready returns an error while contents are being fetched: the supervisor that has them must not stop before.
func (k *ContentKeeper) Ready() error {
	if k == nil || k.fetched == nil {
		return nil
	}
	select {
	case <-k.fetched:
		return nil
	default:
		return errFetching
	}
}

// awaitFetched waits until missing contents have been fetched, unless a content is on disk.
func (k *ContentKeeper) awaitFetched(ctx context.Context, name types.NamespacedName, uid types.UID) {
	if k.fetched == nil || isOnDisk(k.cache, name, uid) {
		return
	}
	select {
	case <-k.fetched:
	case <-ctx.Done():
	}
}

// isOnDisk reports whether a cache has a content.
func isOnDisk(cache ContentCache, name types.NamespacedName, uid types.UID) bool {
	file, err := cache.Open(name, uid)
	if err != nil {
		return false
	}
	_ = file.Close() // nothing was written
	return true
}

// fetch fetches the contents of existing CatalogSources that are not on disk. It ends when the peer does not answer:
// without contents, catalogs are read as soon as they answer.
func (k *ContentKeeper) fetch(ctx context.Context, existing map[types.NamespacedName]types.UID) error {
	if k.peer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for name, uid := range existing {
		if isOnDisk(k.cache, name, uid) {
			continue
		}
		if err := k.fetchOne(ctx, name, uid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// fetchOne fetches one content. Content that cannot be stored, such as that of another version of the supervisor, is only
// logged.
func (k *ContentKeeper) fetchOne(ctx context.Context, name types.NamespacedName, uid types.UID) error {
	from, err := k.peer(ctx, name, uid)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // nothing was written
	if err := k.cache.Receive(name, uid, from); err != nil {
		log.FromContext(ctx).Info("Cannot use the content of a catalog from another supervisor", "catalogSource", name.String(), "reason", err.Error())
		return nil
	}
	log.FromContext(ctx).Info("Read the content of a catalog from another supervisor", "catalogSource", name.String())
	return nil
}

// contentStartup brings the contents on disk up to date once: it removes those of CatalogSources that were deleted
// while no process ran, and fetches missing ones.
type contentStartup struct {
	reader   client.Reader
	contents *ContentKeeper
}

// NeedLeaderElection returns false, because each process has contents on disk.
func (*contentStartup) NeedLeaderElection() bool { return false }

// Start runs the steps. Errors are only logged: the supervisor works without contents on disk.
func (c *contentStartup) Start(ctx context.Context) error {
	defer close(c.contents.fetched)
	logger := log.FromContext(ctx)
	sources := NewList()
	if err := c.reader.List(ctx, sources); err != nil {
		logger.Error(err, "Listing CatalogSources failed")
		return nil
	}
	existing := make(map[types.NamespacedName]types.UID, len(sources.Items))
	for i := range sources.Items {
		existing[client.ObjectKeyFromObject(&sources.Items[i])] = sources.Items[i].GetUID()
	}
	if err := c.contents.cache.Retain(existing, time.Now()); err != nil {
		logger.Error(err, "Cannot remove the contents of deleted catalogs from disk")
	}
	if err := c.contents.fetch(ctx, existing); err != nil && ctx.Err() == nil {
		logger.Info("No content of catalogs from another supervisor", "reason", err.Error())
	}
	return nil
}
