package catalogsource

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memo holds a value for each CatalogSource. It is safe for concurrent use.
type memo[V any] struct{ values sync.Map }

func (m *memo[V]) get(key types.NamespacedName) (value V, found bool) {
	held, found := m.values.Load(key)
	value, _ = held.(V)
	return value, found
}

func (m *memo[V]) set(key types.NamespacedName, value V) { m.values.Store(key, value) }

func (m *memo[V]) forget(key types.NamespacedName) { m.values.Delete(key) }
