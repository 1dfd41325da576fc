package nodes_test

import (
	"context"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// history holds the states of one CatalogSource: the one at the begin, and the one after each write.
type history []operatorsv1alpha1.CatalogSource

// record follows the CatalogSources in the namespace of the case until end is called.
func record(t *testing.T, c *compattest.Cluster) (end func() map[string]history) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := c.Watch(ctx, &operatorsv1alpha1.CatalogSourceList{}, client.InNamespace(c.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	recorded := make(chan map[string]history, 1)
	go func() {
		all := map[string]history{}
		for e := range watcher.ResultChan() {
			if source, is := e.Object.(*operatorsv1alpha1.CatalogSource); is && e.Type != watch.Deleted {
				all[source.Name] = append(all[source.Name], *source)
			}
		}
		recorded <- all
	}()
	t.Cleanup(cancel)
	return func() map[string]history {
		pause.For(t.Context(), time.Second)
		cancel()
		watcher.Stop()
		return <-recorded
	}
}

// writes returns how often only status.latestImageRegistryPoll was written, and each state that was written otherwise.
func (h history) writes() (polls int, others []operatorsv1alpha1.CatalogSource) {
	for i := 1; i < len(h); i++ {
		was, is := h[i-1].DeepCopy(), h[i].DeepCopy()
		polled := is.Status.LatestImageRegistryPoll != nil && !is.Status.LatestImageRegistryPoll.Equal(was.Status.LatestImageRegistryPoll)
		was.Status.LatestImageRegistryPoll, is.Status.LatestImageRegistryPoll = nil, nil
		was.ResourceVersion, is.ResourceVersion, was.ManagedFields, is.ManagedFields = "", "", nil, nil
		if polled && equality.Semantic.DeepEqual(was, is) {
			polls++
		} else {
			others = append(others, h[i])
		}
	}
	return polls, others
}

// connections returns how many values lastConnect had.
func (h history) connections() int {
	seen := map[time.Time]bool{}
	for i := range h {
		seen[connected(&h[i])] = true
	}
	return len(seen)
}

// connectionWrites returns how often status.connectionState was written with another content.
func (h history) connectionWrites() int {
	n := 0
	for i := 1; i < len(h); i++ {
		if !equality.Semantic.DeepEqual(h[i-1].Status.GRPCConnectionState, h[i].Status.GRPCConnectionState) {
			n++
		}
	}
	return n
}

// rested fails if a CatalogSource was written within a period, except for one write of status.latestImageRegistryPoll
// after each poll. It ignores the CatalogSources with the names.
func rested(t *testing.T, c *compattest.Cluster, written map[string]history, period time.Duration, except ...string) {
	t.Helper()
	changed := map[string]bool{}
	for _, name := range except {
		changed[name] = true
	}
	for name, h := range written {
		polls, others := h.writes()
		most := 0
		if h[0].Poll() {
			most = int(period/pollInterval) + 1
		}
		if polls > most {
			t.Errorf("%s was polled %d times, at most %d", name, polls, most)
		}
		for i := range others {
			if !changed[name] {
				t.Errorf("%s was written: %s, first %s", name, c.Manifest(others[i].Status), c.Manifest(h[0].Status))
			}
		}
	}
}
