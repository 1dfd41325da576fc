package catalogs

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// After each write, the writer rests for writeRest times as long as the write took, and for at most maxWriteRest.
// Catalogs whose content changes all the time then leave the disk to others.
const (
	writeRest    = 10
	maxWriteRest = time.Minute
)

// contentWriter writes contents to disk and removes them in the background, one at a time. Its methods are safe for
// concurrent use.
type contentWriter struct {
	cache ContentCache
	// failed is called after a content could not be written.
	failed func(catalogID)
	work   sync.WaitGroup

	mu      sync.Mutex
	pending map[catalogID]*content.Catalog // nil for content to remove
	writing bool
}

// enqueue replaces the pending content of a key. A goroutine writes pending contents.
func (w *contentWriter) enqueue(ctx context.Context, key catalogID, next *content.Catalog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[key] = next
	if !w.writing {
		w.writing = true
		w.work.Go(func() { w.writePending(ctx) })
	}
}

// writePending writes and removes contents until none is pending.
func (w *contentWriter) writePending(ctx context.Context) {
	for {
		key, next, ok := w.dequeue()
		switch {
		case !ok:
			return
		case next == nil:
			if err := w.cache.Remove(key.NamespacedName, key.uid); err != nil {
				log.FromContext(ctx).Error(err, "Cannot remove the content of a catalog from disk", "catalogSource", key.String())
			}
		default:
			begin := time.Now()
			if err := w.cache.Write(ctx, key.NamespacedName, key.uid, next); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Cannot keep the content of a catalog on disk", "catalogSource", key.String())
				w.failed(key)
				continue
			}
			took := time.Since(begin)
			log.FromContext(ctx).V(1).Info("Kept the content of a catalog on disk", "catalogSource", key.String(), "duration", took.String())
			pause(ctx, min(writeRest*took, maxWriteRest))
		}
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
func (w *contentWriter) dequeue() (key catalogID, next *content.Catalog, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, next = range w.pending {
		delete(w.pending, key)
		return key, next, true
	}
	w.writing = false
	return catalogID{}, nil, false
}
