package unpack

import (
	"container/list"
)

// maxMemory bounds the content that is kept in memory, in bytes.
const maxMemory = 32 << 20

// memory keeps the content that was asked for last. What many namespaces install
// at once is decoded once.
type memory struct {
	left  int
	items map[string]*list.Element
	// order has what was asked for last in front.
	order *list.List
}

type item struct {
	key     string
	objects []string
	size    int
}

func newMemory(size int) *memory {
	return &memory{left: size, items: map[string]*list.Element{}, order: list.New()}
}

// get returns what is kept under a key, nil for nothing.
func (m *memory) get(key string) []string {
	element, ok := m.items[key]
	if !ok {
		return nil
	}
	m.order.MoveToFront(element)
	return element.Value.(*item).objects //nolint:forcetypeassert // there is nothing else
}

func (m *memory) put(key string, objects []string) {
	if m.get(key) != nil {
		return
	}
	one := &item{key: key, objects: objects}
	for _, text := range objects {
		one.size += len(text)
	}
	m.items[key] = m.order.PushFront(one)
	m.left -= one.size
	for m.left < 0 {
		last := m.order.Back()
		old := last.Value.(*item) //nolint:forcetypeassert // there is nothing else
		m.order.Remove(last)
		delete(m.items, old.key)
		m.left += old.size
	}
}
