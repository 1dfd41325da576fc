package catalogsource

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// How long replicas that share a node are left there, at first, and at most after
// moves that were of no use.
const (
	settleTime    = 2 * time.Minute
	maxSettleTime = 4 * time.Hour
)

// crowded finds a replica that shares its node with another one while a node is
// free that could take it; nil when there is none. Nodes that come back find
// their replicas elsewhere, and the scheduler moves nothing by itself.
func crowded(o *Observation, view *replicasOf) *corev1.Pod {
	if !isComplete(view.deployment) || *view.deployment.Spec.Replicas < 2 {
		return nil
	}
	on := view.byNode()
	free := slices.ContainsFunc(o.Nodes, func(node *corev1.Node) bool {
		return len(on[node.Name]) == 0 && isReady(node) && !node.Spec.Unschedulable && takes(node, &view.deployment.Spec.Template.Spec)
	})
	if !free {
		return nil
	}
	return youngestOf(on)
}

// byNode are our replicas that serve, by the node on which they run.
func (r *replicasOf) byNode() map[string][]*corev1.Pod {
	on := map[string][]*corev1.Pod{}
	for _, pod := range r.pods {
		if pod.Labels[labelManagedBy] == managedBy && serves(pod) {
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
		}
	}
	return on
}

// apart says whether all replicas serve and none shares its node. Until then a
// move was of no use, even if there is nowhere to go to for the moment.
func (r *replicasOf) apart() bool {
	return isComplete(r.deployment) && youngestOf(r.byNode()) == nil
}

// youngestOf finds the youngest of the pods that are not alone on their node.
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

// byAge puts the older of two pods first.
func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// moves remembers which catalogs had a replica moved: if the scheduler puts it back
// where it was, it has its reasons, and is asked again less and less often.
type moves struct {
	mu   sync.Mutex
	made map[types.NamespacedName]move
}

type move struct {
	count int
	last  time.Time
}

// allowed says how long a replica has to stay; 0 when it may be moved now.
func (m *moves) allowed(key types.NamespacedName, pod *corev1.Pod, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	made := m.made[key]
	since := pod.CreationTimestamp.Time
	if made.last.After(since) {
		since = made.last
	}
	stay := min(settleTime<<min(made.count, 16), maxSettleTime)
	return max(stay-now.Sub(since), 0)
}

func (m *moves) note(key types.NamespacedName, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made[key] = move{count: m.made[key].count + 1, last: now}
}

func (m *moves) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.made, key)
}

// balance moves a replica off a node that it shares.
func (r *Reconciler) balance(ctx context.Context, o *Observation, view *replicasOf, h *hosted) error {
	key, now := client.ObjectKeyFromObject(o.Source), r.clock.Now()
	pod := crowded(o, view)
	if pod == nil {
		if view.apart() {
			r.moves.forget(key)
		}
		return nil
	}
	if left := r.moves.allowed(key, pod, now); left > 0 {
		h.soonest(left)
		return nil
	}
	r.moves.note(key, now)
	r.recorder.Eventf(reference(o.Source), nil, corev1.EventTypeNormal, "Rebalancing", "Host", "%s",
		api.EventNote("replica "+pod.Name+" shares node "+pod.Spec.NodeName+" while another node is free; it is made again"))
	return r.children.remove(ctx, "Pod", pod)
}

// reference is what Events of a CatalogSource are about.
func reference(source *operatorsv1alpha1.CatalogSource) client.Object {
	object := catalogs.NewObject()
	object.SetNamespace(source.Namespace)
	object.SetName(source.Name)
	object.SetUID(source.UID)
	return object
}
