package catalogsource

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// lostReplica is an unreachable replica. The problem is not caused by its content.
type lostReplica struct {
	pod *corev1.Pod
	// notReady is true if its node is not ready.
	notReady bool
}

// lost returns the unreachable replicas of all revisions, sorted by name and limited to maxListed.
func (r *replicasOf) lost() []lostReplica {
	var lost []lostReplica
	for _, pod := range r.pods {
		if pod.DeletionTimestamp == nil && deployment.IsReplica(pod) && r.isLost(pod) {
			lost = append(lost, lostReplica{pod: pod, notReady: r.onLostNode(pod)})
		}
	}
	slices.SortFunc(lost, func(a, b lostReplica) int { return cmp.Compare(a.pod.Name, b.pod.Name) })
	return lost[:min(len(lost), maxListed)]
}

// isLost reports whether a pod does not answer and was therefore removed from the Service, or does
// not serve on a node that is not ready.
func (r *replicasOf) isLost(pod *corev1.Pod) bool {
	c := findPodCondition(pod, corev1.PodReady)
	if c == nil || c.Status == corev1.ConditionTrue {
		return false
	}
	return c.Reason == api.ReasonReplicaUnreachable || r.onLostNode(pod)
}

func (r *replicasOf) onLostNode(pod *corev1.Pod) bool {
	return slices.ContainsFunc(r.nodes, func(node *corev1.Node) bool { return node.Name == pod.Spec.NodeName && !deployment.IsReady(node) })
}

// what describes the state of the replica. It uses the time of the pod's condition, so that the
// text stays constant.
func (l lostReplica) what() string {
	since := findPodCondition(l.pod, corev1.PodReady).LastTransitionTime.UTC().Format(time.RFC3339)
	return l.pod.Name + " on " + l.pod.Spec.NodeName + " does not answer since " + since + " and was taken out of the Service"
}

// outlook describes what happens next.
func (l lostReplica) outlook() string {
	if l.notReady {
		return "node " + l.pod.Spec.NodeName + " is NotReady: replica " + l.pod.Name + " is being replaced"
	}
	return "waiting for node " + l.pod.Spec.NodeName + ": replica " + l.pod.Name + " does not answer; it is replaced when the node is NotReady"
}
