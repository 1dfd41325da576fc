package packagemanifest

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// otherHeads are the catalogs that sent a head which they had not listed. Its methods are safe for concurrent use.
type otherHeads struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]otherHead
}

// otherHead is the content that a catalog had listed, and when it had last confirmed that content.
type otherHead struct {
	digest string
	readAt time.Time
}

// add records that a catalog sent another head. It has no effect if that is known of the same content.
func (o *otherHeads) add(catalog types.NamespacedName, digest string, readAt time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[types.NamespacedName]otherHead{}
	}
	if known, is := o.seen[catalog]; !is || known.digest != digest {
		o.seen[catalog] = otherHead{digest: digest, readAt: readAt}
	}
}

// confirmed reports whether a catalog sent another head, and has confirmed the same content since.
func (o *otherHeads) confirmed(catalog types.NamespacedName, state catalogs.State) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, is := o.seen[catalog]
	return is && known.digest == state.Snapshot.Digest && state.ReadAt.After(known.readAt)
}

// remove forgets a catalog.
func (o *otherHeads) remove(catalog types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, catalog)
}
