package installplan

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/keymutex"
)

// crdLocks serializes the writes of each CustomResourceDefinition by the plans of this process. It
// is safe for concurrent use.
type crdLocks struct {
	locks keymutex.KeyMutex

	mu sync.Mutex
	// written holds the resource versions that the last writes returned, by the name of the
	// definition.
	written map[string]string
}

func newCRDLocks() *crdLocks {
	return &crdLocks{locks: keymutex.NewHashed(0), written: map[string]string{}}
}

// lock waits until no other plan writes a definition, and returns the function that unlocks it.
func (l *crdLocks) lock(name string) (release func()) {
	l.locks.LockKey(name)
	return func() {
		// UnlockKey fails only for a key that is not locked.
		_ = l.locks.UnlockKey(name)
	}
}

// recordWrite records the resource version of a definition that a write returned.
func (l *crdLocks) recordWrite(crd *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[crd.GetName()] = crd.GetResourceVersion()
}

// changed reports whether this process has written a definition since it was read. A nil read means
// that it was absent.
func (l *crdLocks) changed(name string, read *unstructured.Unstructured) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, written := l.written[name]
	if !written || read == nil {
		return written
	}
	order, err := resourceversion.CompareResourceVersion(read.GetResourceVersion(), last)
	return err == nil && order < 0
}
