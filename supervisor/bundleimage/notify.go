package bundleimage

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// notifier notifies listeners of namespaces with changes. A slow listener is notified of a namespace once, however
// many changes it missed.
type notifier struct {
	mu        sync.Mutex
	listeners []*listener
}

type listener struct {
	events  chan event.GenericEvent
	pending map[string]bool
	// more is filled if something is pending.
	more chan struct{}
}

func (n *notifier) listen() <-chan event.GenericEvent {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := &listener{events: make(chan event.GenericEvent), pending: map[string]bool{}, more: make(chan struct{}, 1)}
	n.listeners = append(n.listeners, one)
	return one.events
}

// add queues namespaces for notification.
func (n *notifier) add(namespaces map[string]bool) {
	if len(namespaces) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.listeners {
		maps.Copy(one.pending, namespaces)
		select {
		case one.more <- struct{}{}:
		default:
		}
	}
}

// run sends notifications to the listeners that exist at the call, until ctx ends.
func (n *notifier) run(ctx context.Context) {
	n.mu.Lock()
	listeners := slices.Clone(n.listeners)
	n.mu.Unlock()
	var group sync.WaitGroup
	for _, one := range listeners {
		group.Go(func() { n.send(ctx, one) })
	}
	<-ctx.Done()
	group.Wait()
}

func (n *notifier) send(ctx context.Context, to *listener) {
	for {
		select {
		case <-to.more:
		case <-ctx.Done():
			return
		}
		n.mu.Lock()
		namespaces := slices.Sorted(maps.Keys(to.pending))
		clear(to.pending)
		n.mu.Unlock()
		for _, namespace := range namespaces {
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
			select {
			case to.events <- event.GenericEvent{Object: object}:
			case <-ctx.Done():
				return
			}
		}
	}
}
