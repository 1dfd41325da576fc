package failover

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/replicas"
)

// scope is an observation with the objects that it was built from.
type scope struct {
	Observation

	sources map[types.NamespacedName]*unstructured.Unstructured
	pods    map[types.UID]*corev1.Pod
}

// observe reads the state of the cluster.
func (r *Reconciler) observe(ctx context.Context, standing Standing) (*scope, error) {
	seen := &scope{
		Observation: Observation{
			Now: r.clock.Now(), Standing: standing, Nodes: map[string]Node{},
			Marks: r.marks, Attempts: r.attempts, Budget: r.budget, Limits: r.limits,
		},
		sources: map[types.NamespacedName]*unstructured.Unstructured{},
		pods:    map[types.UID]*corev1.Pod{},
	}
	if err := r.observePods(ctx, seen); err != nil {
		return nil, err
	}
	if err := r.observeNodes(ctx, seen); err != nil {
		return nil, err
	}
	return seen, nil
}

// silence returns when the most recent unreachable replica stopped answering; zero if all answer.
// The Leases of the nodes are only needed if it is not zero.
func (s *scope) silence() time.Time {
	var last time.Time
	for _, c := range s.Catalogs {
		for _, r := range c.Replicas {
			if r.silent() && r.Since.After(last) {
				last = r.Since
			}
		}
	}
	return last
}

// observePods reads the pods of each CatalogSource.
func (r *Reconciler) observePods(ctx context.Context, seen *scope) error {
	var pods corev1.PodList
	managed := client.MatchingLabels{api.LabelManaged: catalogs.LabelManagedValue}
	if err := r.reader.List(ctx, &pods, managed, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the pods of catalogs: %w", err)
	}
	of := map[types.NamespacedName][]*corev1.Pod{}
	for i := range pods.Items {
		if pod := &pods.Items[i]; ours(pod) {
			key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[api.LabelCatalogSource]}
			of[key] = append(of[key], pod)
		}
	}
	for key, found := range of {
		source := catalogs.NewObject()
		err := r.reader.Get(ctx, key, source)
		if apierrors.IsNotFound(err) {
			continue // the pods are garbage-collected with it
		}
		if err != nil {
			return fmt.Errorf("reading CatalogSource %s: %w", key, err)
		}
		seen.sources[key] = source
		seen.Catalogs = append(seen.Catalogs, r.catalog(key, found, seen))
	}
	slices.SortFunc(seen.Catalogs, func(a, b Catalog) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	return nil
}

// ours reports whether a pod serves a catalog and is replaced after its deletion: a ReplicaSet
// controls it, or a CatalogSource does, for pods of another controller.
func ours(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return pod.Labels[api.LabelCatalogSource] != "" && owner != nil &&
		(owner.Kind == "ReplicaSet" || owner.Kind == operatorsv1alpha1.CatalogSourceKind)
}

// catalog combines the state of the pods in the API with the results of their probes.
func (r *Reconciler) catalog(key types.NamespacedName, pods []*corev1.Pod, seen *scope) Catalog {
	c := Catalog{Key: key}
	states := r.replicas.Replicas(key)
	for _, pod := range pods {
		seen.pods[pod.UID] = pod
		replica := replicaOf(pod)
		replica.Since = r.started
		for _, state := range states {
			if state.UID == pod.UID {
				replica.Health, replica.Since = state.Health, state.Since
				// The EndpointSlice may become ready later than the pod.
				replica.Answered, replica.Confirmed = state.Answered, state.Confirmed && state.Ready
			}
		}
		c.Replicas = append(c.Replicas, replica)
	}
	slices.SortFunc(c.Replicas, func(a, b Replica) int { return cmp.Compare(a.UID, b.UID) })
	return c
}

// replicaOf returns the state of a pod in the API.
func replicaOf(pod *corev1.Pod) Replica {
	replica := Replica{
		Name: pod.Name, UID: pod.UID, Node: pod.Spec.NodeName, Phase: pod.Status.Phase,
		Terminating: !pod.DeletionTimestamp.IsZero(), Health: replicas.Unknown,
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			replica.Ready = c.Status == corev1.ConditionTrue
			if !replica.Ready && c.Reason == string(Silent) {
				replica.Marked = c.LastTransitionTime.Time
			}
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			replica.Disrupted = c.LastTransitionTime.Time
		}
	}
	return replica
}

// observeNodes reads the nodes. It reads nodes with pods from the API server if the cache lacks
// them, because the cache may lag behind.
func (r *Reconciler) observeNodes(ctx context.Context, seen *scope) error {
	var nodes corev1.NodeList
	if err := r.reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	for i := range nodes.Items {
		seen.Nodes[nodes.Items[i].Name] = nodeOf(&nodes.Items[i])
	}
	for _, pod := range seen.pods {
		name := pod.Spec.NodeName
		if _, known := seen.Nodes[name]; known || name == "" {
			continue
		}
		node := &corev1.Node{}
		err := r.live.Get(ctx, client.ObjectKey{Name: name}, node)
		switch {
		case apierrors.IsNotFound(err):
			seen.Nodes[name] = Node{Gone: true}
		case err != nil:
			return fmt.Errorf("reading node %s: %w", name, err)
		default:
			seen.Nodes[name] = nodeOf(node)
		}
	}
	return nil
}

func nodeOf(node *corev1.Node) Node {
	n := Node{
		Zone:  node.Labels[corev1.LabelTopologyRegion] + "/" + node.Labels[corev1.LabelTopologyZone],
		Ready: corev1.ConditionUnknown, Since: node.CreationTimestamp.Time,
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Ready, n.Since = c.Status, c.LastTransitionTime.Time
		}
	}
	return n
}

// observeLeases reads when the kubelets last renewed their Leases. A failure is only logged,
// because the Leases are additional evidence.
func (r *Reconciler) observeLeases(ctx context.Context, seen *scope) {
	const patience = time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var leases coordinationv1.LeaseList
	if err := r.live.List(ctx, &leases, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		log.FromContext(ctx).Error(err, "Reading the Leases of the nodes failed", "namespace", corev1.NamespaceNodeLease)
		return
	}
	for _, lease := range leases.Items {
		node, known := seen.Nodes[lease.Name]
		if known && lease.Spec.RenewTime != nil {
			node.Renewed = r.leases.see(lease.Name, lease.Spec.RenewTime.Time, seen.Now)
			seen.Nodes[lease.Name] = node
		}
	}
	maps.DeleteFunc(r.leases, func(node string, _ sighting) bool { return seen.Nodes[node].Renewed.IsZero() })
}

// sightings holds the last observation of each node's Lease.
type sightings map[string]sighting

// sighting is the renewal time in a Lease, and since when this process has seen it by its own
// clock.
type sighting struct{ renewed, since time.Time }

// see records the renewal time of a Lease and returns since when it has been unchanged.
func (s sightings) see(node string, renewed, now time.Time) time.Time {
	last, known := s[node]
	if !known || !last.renewed.Equal(renewed) {
		last = sighting{renewed: renewed, since: now}
		s[node] = last
	}
	return last.since
}
