package catalogs

import (
	"context"
	"errors"
	"io"
	"io/fs"
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

// contentStartup brings the contents on disk up to date once: it removes those of CatalogSources that were deleted
// while no process ran, and fetches missing ones.
type contentStartup struct {
	cache ContentCache
	// peer reads contents from another supervisor; nil for none.
	peer ContentReader
	// reader lists CatalogSources, and done is closed after the steps; nil if they never run.
	reader client.Reader
	done   chan struct{}
}

// NeedLeaderElection returns false, because each process has contents on disk.
func (*contentStartup) NeedLeaderElection() bool { return false }

// Start runs the steps. Errors are only logged: the supervisor works without contents on disk.
func (c *contentStartup) Start(ctx context.Context) error {
	defer close(c.done)
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
	if err := c.cache.Retain(existing, time.Now()); err != nil {
		logger.Error(err, "Cannot remove the contents of deleted catalogs from disk")
	}
	if err := c.fetch(ctx, existing); err != nil && ctx.Err() == nil {
		logger.Info("No content of catalogs from another supervisor", "reason", err.Error())
	}
	return nil
}

// fetch fetches the contents of existing CatalogSources that are not on disk. It ends when the peer does not answer:
// without contents, catalogs are read as soon as they answer.
func (c *contentStartup) fetch(ctx context.Context, existing map[types.NamespacedName]types.UID) error {
	if c.peer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for name, uid := range existing {
		if isOnDisk(c.cache, name, uid) {
			continue
		}
		if err := c.fetchOne(ctx, name, uid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// fetchOne fetches one content. Content that cannot be stored, such as that of another version of the supervisor, is only
// logged.
func (c *contentStartup) fetchOne(ctx context.Context, name types.NamespacedName, uid types.UID) error {
	from, err := c.peer(ctx, name, uid)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // nothing was written
	if err := c.cache.Receive(name, uid, from); err != nil {
		log.FromContext(ctx).Info("Cannot use the content of a catalog from another supervisor", "catalogSource", name.String(), "reason", err.Error())
		return nil
	}
	log.FromContext(ctx).Info("Read the content of a catalog from another supervisor", "catalogSource", name.String())
	return nil
}

// ready returns an error until the steps have ended.
func (c *contentStartup) ready() error {
	if c.done == nil {
		return nil
	}
	select {
	case <-c.done:
		return nil
	default:
		return errFetching
	}
}

// await waits until missing contents have been fetched, unless a content is on disk.
func (c *contentStartup) await(ctx context.Context, name types.NamespacedName, uid types.UID) {
	if c.done == nil || isOnDisk(c.cache, name, uid) {
		return
	}
	select {
	case <-c.done:
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
