package catalogsource

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons that a kubelet alternately reports for an image that it cannot pull.
const (
	waitingPull    = "ErrImagePull"
	waitingBackOff = "ImagePullBackOff"
)

// unpulled returns since when a replica of the newest revision has been unable to pull its images;
// zero if none is.
func (r *replicasOf) unpulled() time.Time {
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
