package catalogs

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// publisher sends events for changed catalogs.
type publisher struct {
	mu        sync.Mutex
	listeners []chan event.GenericEvent
}

func (p *publisher) listen() <-chan event.GenericEvent {
	const burst = 64
	p.mu.Lock()
	defer p.mu.Unlock()
	listener := make(chan event.GenericEvent, burst)
	p.listeners = append(p.listeners, listener)
	return listener
}

// publish sends an event for a catalog to every listener.
func (p *publisher) publish(ctx context.Context, key types.NamespacedName) {
	object := NewObject()
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	p.mu.Lock()
	listeners := p.listeners
	p.mu.Unlock()
	for _, listener := range listeners {
		select {
		case listener <- event.GenericEvent{Object: object}:
		case <-ctx.Done():
			return
		}
	}
}
