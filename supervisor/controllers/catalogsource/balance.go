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

// Initial and maximum time for which replicas may share a node. The time doubles after each move.
const (
	settleTime    = 2 * time.Minute
	maxSettleTime = 4 * time.Hour
)

// crowded returns a replica that shares its node while another suitable node has none; nil if there
// is none. The scheduler does not move running pods, so replicas do not return to a recovered node.
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

// byNode returns the supervisor's serving replicas by node name.
func (r *replicasOf) byNode() map[string][]*corev1.Pod {
	on := map[string][]*corev1.Pod{}
	for _, pod := range r.pods {
		if pod.Labels[labelManagedBy] == managedBy && serves(pod) {
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
		}
	}
	return on
}

// apart reports whether all replicas serve on different nodes. Until then, earlier moves count as
// unsuccessful, even if no node is free.
func (r *replicasOf) apart() bool {
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

// moves records the moved replicas of each catalog. The scheduler may place a moved replica on the
// same node again. Each further move then waits longer.
type moves struct {
	mu   sync.Mutex
	made map[types.NamespacedName]move
}

type move struct {
	count int
	last  time.Time
}

// allowed returns how long a replica must stay; 0 if it may move now.
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

// balance deletes a replica that shares its node, so that the scheduler places a new one.
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

// reference returns the object that Events about a CatalogSource refer to.
func reference(source *operatorsv1alpha1.CatalogSource) client.Object {
	object := catalogs.NewObject()
	object.SetNamespace(source.Namespace)
	object.SetName(source.Name)
	object.SetUID(source.UID)
	return object
}
