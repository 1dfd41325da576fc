package bundleimage

import "container/list"

// maxMemory bounds the content that is kept in memory, in bytes.
const maxMemory = 32 << 20

// memory keeps the content that was asked for last. What many namespaces install
// at once is decoded once.
type memory struct {
	left  int
	items map[string]*item
	// order has the keys, that asked for last in front.
	order *list.List
}

type item struct {
	objects []string
	size    int
	place   *list.Element
}

func newMemory(size int) *memory {
	return &memory{left: size, items: map[string]*item{}, order: list.New()}
}

// get returns what is kept under a key, nil for nothing.
func (m *memory) get(key string) []string {
	one := m.items[key]
	if one == nil {
		return nil
	}
	m.order.MoveToFront(one.place)
	return one.objects
}

func (m *memory) put(key string, objects []string) {
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
		last, _ := m.order.Remove(m.order.Back()).(string)
		m.left += m.items[last].size
		delete(m.items, last)
	}
}
