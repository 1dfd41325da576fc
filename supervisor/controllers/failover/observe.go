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
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// observer reads the state of the cluster.
type observer struct {
	reader   client.Reader // reads the cache
	live     client.Reader // reads the API server
	replicas replicaReader
	// started is the start of this process.
	started time.Time
	leases  leaseTimes
}

// clusterState is the state of the cluster, with the objects that it was built from.
type clusterState struct {
	catalogs []Catalog
	nodes    map[string]Node
	sources  map[types.NamespacedName]*unstructured.Unstructured
	pods     map[types.UID]*corev1.Pod
}

// observe reads the pods of each CatalogSource, and the nodes.
func (o *observer) observe(ctx context.Context) (*clusterState, error) {
	byCatalog, err := o.observePods(ctx)
	if err != nil {
		return nil, err
	}
	seen := &clusterState{sources: map[types.NamespacedName]*unstructured.Unstructured{}, pods: map[types.UID]*corev1.Pod{}}
	for key, pods := range byCatalog {
		source := catalogs.NewObject()
		err := o.reader.Get(ctx, key, source)
		if apierrors.IsNotFound(err) {
			continue // the pods are garbage-collected with it
		}
		if err != nil {
			return nil, fmt.Errorf("reading CatalogSource %s: %w", key, err)
		}
		seen.sources[key] = source
		seen.catalogs = append(seen.catalogs, o.catalog(key, pods))
		for _, pod := range pods {
			seen.pods[pod.UID] = pod
		}
	}
	slices.SortFunc(seen.catalogs, func(a, b Catalog) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	seen.nodes, err = o.observeNodes(ctx, seen.pods)
	return seen, err
}

// unreachableSince returns when the most recent unreachable replica stopped answering; zero if all answer.
// The Leases of the nodes are only needed if it is not zero.
func (s *clusterState) unreachableSince() time.Time {
	var last time.Time
	for _, c := range s.catalogs {
		for _, r := range c.Replicas {
			if r.unreachable() && r.Since.After(last) {
				last = r.Since
			}
		}
	}
	return last
}

// observePods reads the pods of all catalogs.
func (o *observer) observePods(ctx context.Context) (map[types.NamespacedName][]*corev1.Pod, error) {
	var pods corev1.PodList
	managed := client.MatchingLabels{api.LabelManaged: catalogs.LabelManagedValue}
	if err := o.reader.List(ctx, &pods, managed, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods of catalogs: %w", err)
	}
	byCatalog := map[types.NamespacedName][]*corev1.Pod{}
	for i := range pods.Items {
		if pod := &pods.Items[i]; isReplica(pod) {
			key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[api.LabelCatalogSource]}
			byCatalog[key] = append(byCatalog[key], pod)
		}
	}
	return byCatalog, nil
}

// isReplica reports whether a pod serves a catalog and is replaced after its deletion: a ReplicaSet
// controls it, or a CatalogSource does, for pods of another controller.
func isReplica(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return pod.Labels[api.LabelCatalogSource] != "" && owner != nil &&
		(owner.Kind == "ReplicaSet" || owner.Kind == operatorsv1alpha1.CatalogSourceKind)
}

// catalog combines the state of the pods in the API with the results of their probes.
func (o *observer) catalog(key types.NamespacedName, pods []*corev1.Pod) Catalog {
	c := Catalog{Key: key}
	states := o.replicas.Replicas(key)
	for _, pod := range pods {
		replica := replicaOf(pod)
		replica.Since = o.started
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
			if !replica.Ready && c.Reason == string(ReplicaUnreachable) {
				replica.Marked = c.LastTransitionTime.Time
			}
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			replica.Disrupted = c.LastTransitionTime.Time
		}
	}
	return replica
}

// maxLiveNodes is how many nodes of the pods of one namespace are read from the API server at once. A tenant can name
// any number of nodes in pods that look like replicas.
const maxLiveNodes = 20

// observeNodes reads the nodes. It reads the nodes of pods from the API server if the cache lacks
// them, because the cache may lag behind. Nodes beyond maxLiveNodes are missing in the result.
func (o *observer) observeNodes(ctx context.Context, pods map[types.UID]*corev1.Pod) (map[string]Node, error) {
	var list corev1.NodeList
	if err := o.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	nodes := map[string]Node{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = nodeOf(&list.Items[i])
	}
	reads := map[string]int{}
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if _, known := nodes[name]; known || name == "" || reads[pod.Namespace] == maxLiveNodes {
			continue
		}
		reads[pod.Namespace]++
		node := &corev1.Node{}
		err := o.live.Get(ctx, client.ObjectKey{Name: name}, node)
		switch {
		case apierrors.IsNotFound(err):
			nodes[name] = Node{Gone: true}
		case err != nil:
			return nil, fmt.Errorf("reading node %s: %w", name, err)
		default:
			nodes[name] = nodeOf(node)
		}
	}
	return nodes, nil
}

// withLeases returns the nodes with the times at which their kubelets renewed their Leases. A failure is
// only logged, because the Leases are additional evidence.
func (o *observer) withLeases(ctx context.Context, nodes map[string]Node, now time.Time) map[string]Node {
	const timeout = time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var leases coordinationv1.LeaseList
	if err := o.live.List(ctx, &leases, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		log.FromContext(ctx).Error(err, "Reading the Leases of the nodes failed", "namespace", corev1.NamespaceNodeLease)
		return nodes
	}
	all := maps.Clone(nodes)
	for _, lease := range leases.Items {
		node, known := all[lease.Name]
		if known && lease.Spec.RenewTime != nil {
			node.Renewed = o.leases.record(lease.Name, lease.Spec.RenewTime.Time, now)
			all[lease.Name] = node
		}
	}
	maps.DeleteFunc(o.leases, func(node string, _ leaseTime) bool { return all[node].Renewed.IsZero() })
	return all
}

// leaseTimes holds the last renewal of each node's Lease.
type leaseTimes map[string]leaseTime

// leaseTime is the renewal time in a Lease, and since when this process has seen it by its own
// clock.
type leaseTime struct{ renewed, since time.Time }

// record records the renewal time of a Lease and returns since when it has been unchanged.
func (l leaseTimes) record(node string, renewed, now time.Time) time.Time {
	last, known := l[node]
	if !known || !last.renewed.Equal(renewed) {
		last = leaseTime{renewed: renewed, since: now}
		l[node] = last
	}
	return last.since
}
