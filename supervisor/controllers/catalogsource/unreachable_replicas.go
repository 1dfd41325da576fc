package catalogsource

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// unreachableReplica is an unreachable replica. The problem is not caused by its content.
type unreachableReplica struct {
	pod *corev1.Pod
	// notReady is true if its node is not ready.
	notReady bool
}

// unreachable returns the unreachable replicas of all revisions, sorted by name and limited to maxListed.
func (r *catalogReplicas) unreachable() []unreachableReplica {
	var unreachable []unreachableReplica
	for _, pod := range r.pods {
		if pod.DeletionTimestamp == nil && deployment.IsReplica(pod) && r.isUnreachable(pod) {
			unreachable = append(unreachable, unreachableReplica{pod: pod, notReady: r.onNotReadyNode(pod)})
		}
	}
	slices.SortFunc(unreachable, func(a, b unreachableReplica) int { return cmp.Compare(a.pod.Name, b.pod.Name) })
	return unreachable[:min(len(unreachable), maxListed)]
}

// isUnreachable reports whether a pod does not answer and was therefore removed from the Service, or does
// not serve on a node that is not ready.
func (r *catalogReplicas) isUnreachable(pod *corev1.Pod) bool {
	c := findPodCondition(pod, corev1.PodReady)
	if c == nil || c.Status == corev1.ConditionTrue {
		return false
	}
	return c.Reason == api.ReasonReplicaUnreachable || r.onNotReadyNode(pod)
}

func (r *catalogReplicas) onNotReadyNode(pod *corev1.Pod) bool {
	return slices.ContainsFunc(r.nodes, func(node *corev1.Node) bool { return node.Name == pod.Spec.NodeName && !deployment.IsReady(node) })
}

// describe describes the state of the replica. It uses the time of the pod's condition, so that the
// text stays constant.
func (l unreachableReplica) describe() string {
	since := findPodCondition(l.pod, corev1.PodReady).LastTransitionTime.UTC().Format(time.RFC3339)
	return l.pod.Name + " on " + l.pod.Spec.NodeName + " has not answered since " + since + " and was removed from the Service"
}

// nextStep describes what happens next.
func (l unreachableReplica) nextStep() string {
	if l.notReady {
		return "node " + l.pod.Spec.NodeName + " is NotReady: replica " + l.pod.Name + " is being replaced"
	}
	return "waiting for node " + l.pod.Spec.NodeName + ": replica " + l.pod.Name + " does not answer; it is replaced when the node is NotReady"
}

// Reasons that a kubelet alternately reports for an image that it cannot pull.
const (
	waitingPull    = "ErrImagePull"
	waitingBackOff = "ImagePullBackOff"
)

// pullFailingSince returns since when a replica of the newest revision has been unable to pull its
// images; zero if none is.
func (r *catalogReplicas) pullFailingSince() time.Time {
	var since time.Time
	if r.deployment == nil {
		return since
	}
	for _, pod := range r.starting() {
		if cannotPull(pod) && (since.IsZero() || pod.CreationTimestamp.Time.Before(since)) {
			since = pod.CreationTimestamp.Time
		}
	}
	return since
}

func cannotPull(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		waiting := s.State.Waiting
		return waiting != nil && (waiting.Reason == waitingPull || waiting.Reason == waitingBackOff)
	})
}
