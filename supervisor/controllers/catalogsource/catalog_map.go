package catalogsource

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// catalogMap holds a value for each CatalogSource. It is safe for concurrent use.
type catalogMap[V any] struct{ values sync.Map }

func (m *catalogMap[V]) get(key types.NamespacedName) (value V, found bool) {
	held, found := m.values.Load(key)
	value, _ = held.(V)
	return value, found
}

func (m *catalogMap[V]) set(key types.NamespacedName, value V) { m.values.Store(key, value) }

func (m *catalogMap[V]) forget(key types.NamespacedName) { m.values.Delete(key) }
