package failover

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

const (
	// notReadyGrace is how long a node must be not ready before replicas on it that still answer
	// are deleted. A restarted kubelet reports not ready for some seconds.
	notReadyGrace = 10 * time.Second
	// unhealthyZone is the fraction of nodes, and fewNodes the number of nodes, that may be not
	// ready before a zone counts as disrupted. Both match the node lifecycle controller.
	unhealthyZone = 0.55
	fewNodes      = 2
)

// nodeProblem returns the problem of a pod's node; empty if the node is healthy or may soon be.
func (d *deletions) nodeProblem(r Replica) (Reason, string) {
	node, known := d.Nodes[r.Node]
	switch {
	case !known:
		return "", ""
	case node.Gone:
		return NodeGone, fmt.Sprintf("node %s no longer exists", r.Node)
	case node.Ready == corev1.ConditionTrue:
		return "", ""
	case node.Ready == corev1.ConditionFalse && r.Health == replicas.Serving && !d.overdue(node.Since, notReadyGrace):
		return "", ""
	case r.Health == replicas.Unknown && r.Phase == corev1.PodRunning && !d.overdue(r.Since, firstProbes):
		// The replica may answer. Probing has only just begun.
		return "", ""
	default:
		return NodeNotReady, fmt.Sprintf("node %s is not ready (its condition Ready is %s)", r.Node, node.Ready)
	}
}

// zoneStates reports for each zone whether so many of its nodes are not ready that the cause may
// not be the nodes themselves. A zone without any ready node does not count, because caution has no
// benefit there.
func zoneStates(nodes map[string]Node) map[string]bool {
	total, notReadyNodes := map[string]int{}, map[string]int{}
	for _, n := range nodes {
		if n.Gone {
			continue
		}
		total[n.Zone]++
		if n.Ready != corev1.ConditionTrue {
			notReadyNodes[n.Zone]++
		}
	}
	states := map[string]bool{}
	for zone, n := range notReadyNodes {
		states[zone] = n > fewNodes && n < total[zone] && float64(n)/float64(total[zone]) >= unhealthyZone
	}
	return states
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

// stale reports whether the kubelet of a node has failed to renew its Lease.
func (n Node) stale(now time.Time) bool {
	return !n.Renewed.IsZero() && now.Sub(n.Renewed) > leaseStale
}
