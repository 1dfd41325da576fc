package failover

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Witness watches a CatalogSource and records every status that does not describe a working
// catalog. It sees every written status.
type Witness struct {
	stop func()
	done sync.WaitGroup

	mu   sync.Mutex
	said []string
}

// Watch starts to watch a catalog that is READY.
func (s *Scene) Watch(ctx context.Context, name string) (*Witness, error) {
	watch, err := s.Client.Watch(ctx, catalogs.NewList(), client.InNamespace(CatalogNamespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return nil, fmt.Errorf("watching CatalogSource %s: %w", name, err)
	}
	w := &Witness{stop: watch.Stop}
	w.done.Go(func() {
		for event := range watch.ResultChan() {
			if u, ok := event.Object.(*unstructured.Unstructured); ok {
				w.hear(u)
			}
		}
	})
	return w, nil
}

func (w *Witness) hear(u *unstructured.Unstructured) {
	source, err := catalogs.Decode(u)
	if err != nil {
		return
	}
	state := source.Status.GRPCConnectionState
	if state != nil && state.LastObservedState == stateReady && source.Status.Reason == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, fmt.Sprintf("%s: state %+v, reason %s, message %s", u.GetResourceVersion(), state, source.Status.Reason, source.Status.Message))
}

// Stop stops the watch and returns the recorded statuses.
func (w *Witness) Stop() []string {
	w.stop()
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said
}
