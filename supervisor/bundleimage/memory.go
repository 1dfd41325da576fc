package bundleimage

import "container/list"

// maxMemory is the maximum size of the content that is kept in memory, in bytes.
const maxMemory = 32 << 20

// memory holds the content that was requested last. Content that many namespaces install at once is decoded
// once.
type memory struct {
	left  int
	items map[contentKey]*item
	// order holds the keys, the most recently used first.
	order *list.List
}

type item struct {
	objects []string
	size    int
	place   *list.Element
}

func newMemory(size int) *memory {
	return &memory{left: size, items: map[contentKey]*item{}, order: list.New()}
}

// get returns the content of a key; nil if there is none.
func (m *memory) get(key contentKey) []string {
	one := m.items[key]
	if one == nil {
		return nil
	}
	m.order.MoveToFront(one.place)
	return one.objects
}

func (m *memory) put(key contentKey, objects []string) {
	if m.get(key) != nil {
		return
	}
	one := &item{objects: objects, place: m.order.PushFront(key)}
	for _, text := range objects {
		one.size += len(text)
	}
	m.items[key] = one
	m.left -= one.size
	for m.left < 0 {
		last, _ := m.order.Remove(m.order.Back()).(contentKey)
		m.left += m.items[last].size
		delete(m.items, last)
	}
}
