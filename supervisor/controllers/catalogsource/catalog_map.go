package catalogsource

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// perCatalog holds a value for each CatalogSource. It is safe for concurrent use.
type perCatalog[V any] struct{ values sync.Map }

func (m *perCatalog[V]) get(key types.NamespacedName) (value V, found bool) {
	held, found := m.values.Load(key)
	value, _ = held.(V)
	return value, found
}

func (m *perCatalog[V]) set(key types.NamespacedName, value V) { m.values.Store(key, value) }

func (m *perCatalog[V]) forget(key types.NamespacedName) { m.values.Delete(key) }
