package catalogsource

import (
	"cmp"
	"context"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// Initial and maximum time for which replicas may share a node. The time doubles after each move.
const (
	minStay = 2 * time.Minute
	maxStay = 4 * time.Hour
)

// replicaToMove returns a replica that shares its node while another suitable node has none; nil if there
// is none. The scheduler does not move running pods, so replicas do not return to a recovered node.
func replicaToMove(view *catalogReplicas) *corev1.Pod {
	if !isComplete(view.deployment) || *view.deployment.Spec.Replicas < 2 {
		return nil
	}
	on := view.byNode()
	free := slices.ContainsFunc(view.nodes, func(node *corev1.Node) bool {
		return len(on[node.Name]) == 0 && deployment.IsReady(node) && !node.Spec.Unschedulable && deployment.Matches(node, &view.deployment.Spec.Template.Spec)
	})
	if !free {
		return nil
	}
	return youngestOf(on)
}

// byNode returns the supervisor's serving replicas by node name.
func (r *catalogReplicas) byNode() map[string][]*corev1.Pod {
	on := map[string][]*corev1.Pod{}
	for _, pod := range r.pods {
		if deployment.IsReplica(pod) && serves(pod) {
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
		}
	}
	return on
}

// isSpread reports whether all replicas serve on different nodes. Until then, earlier moves count as
// unsuccessful, even if no node is free.
func (r *catalogReplicas) isSpread() bool {
	return isComplete(r.deployment) && youngestOf(r.byNode()) == nil
}

// youngestOf returns the youngest pod among those that share a node; nil if none does.
func youngestOf(on map[string][]*corev1.Pod) *corev1.Pod {
	var sharing []*corev1.Pod
	for _, pods := range on {
		if len(pods) > 1 {
			sharing = append(sharing, pods...)
		}
	}
	if len(sharing) == 0 {
		return nil
	}
	return slices.MaxFunc(sharing, byAge)
}

// byAge compares two pods by creation time, then by name.
func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// rebalancer deletes replicas that share a node, and records the deletions of each catalog. The
// scheduler may place the new replica on the same node again. Each further deletion then waits longer.
type rebalancer struct {
	catalogObjects *catalogObjects
	recorder       events.EventRecorder
	clock          clock.PassiveClock
	moves          catalogMap[move]
}

// move is the last deletion, and the number of deletions so far.
type move struct {
	count int
	at    time.Time
}

// rebalance deletes a replica that shares its node, so that the scheduler places a new one. next is when
// to check again.
func (b *rebalancer) rebalance(ctx context.Context, view *catalogReplicas) (next time.Duration, err error) {
	key, now := client.ObjectKeyFromObject(view.source), b.clock.Now()
	pod := replicaToMove(view)
	if pod == nil {
		if view.isSpread() {
			b.moves.forget(key)
		}
		return 0, nil
	}
	last, _ := b.moves.get(key)
	if left := last.stay(pod, now); left > 0 {
		return left, nil
	}
	b.moves.set(key, move{count: last.count + 1, at: now})
	b.recorder.Eventf(reference(view.source), nil, corev1.EventTypeNormal, "Rebalancing", "Host", "%s",
		api.EventNote("replica "+pod.Name+" shares node "+pod.Spec.NodeName+" while another node is free; the supervisor recreates it"))
	return 0, b.catalogObjects.remove(ctx, "Pod", pod)
}

// stay returns how long a replica must stay; 0 if it may move now.
func (m move) stay(pod *corev1.Pod, now time.Time) time.Duration {
	since := pod.CreationTimestamp.Time
	if m.at.After(since) {
		since = m.at
	}
	return max(apply.Backoff{First: minStay, Max: maxStay}.After(m.count+1)-now.Sub(since), 0)
}

// reference returns the object that Events about a CatalogSource refer to.
func reference(source *operatorsv1alpha1.CatalogSource) client.Object {
	object := catalogs.NewObject()
	object.SetNamespace(source.Namespace)
	object.SetName(source.Name)
	object.SetUID(source.UID)
	return object
}
