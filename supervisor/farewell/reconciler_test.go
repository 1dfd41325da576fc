package farewell

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestDue checks that each pod is due after the delay, and that deleted pods are forgotten.
func TestDue(t *testing.T) {
	d, service, begun := departures{}, types.NamespacedName{Namespace: "mill", Name: "mill-service"}, time.Unix(1000, 0)
	for _, step := range []struct {
		at      time.Duration
		leaving map[types.UID]string
		due     []string
		after   time.Duration
	}{
		{at: 0, leaving: map[types.UID]string{"1": "a"}, after: webhook.Rerouting},
		{at: time.Second, leaving: map[types.UID]string{"1": "a", "2": "b"}, after: webhook.Rerouting - time.Second},
		{at: webhook.Rerouting, leaving: map[types.UID]string{"1": "a", "2": "b"}, due: []string{"a"}, after: time.Second},
		{at: webhook.Rerouting + time.Second, leaving: map[types.UID]string{"1": "a", "2": "b"}, due: []string{"a", "b"}},
		{at: time.Minute, leaving: map[types.UID]string{"2": "b"}, due: []string{"b"}},
		{at: time.Minute},
		{at: time.Minute, leaving: map[types.UID]string{"2": "b"}, after: webhook.Rerouting},
	} {
		due, after := d.due(service, step.leaving, begun.Add(step.at))
		slices.Sort(due)
		if diff := cmp.Diff(step.due, due); diff != "" || after != step.after {
			t.Errorf("after %s: look again after %s, want %s; due (-want +got):\n%s", step.at, after, step.after, diff)
		}
	}
	d.due(service, nil, begun)
	if len(d) != 0 {
		t.Errorf("it remembers %v", d)
	}
}
