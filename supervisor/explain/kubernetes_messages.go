package explain

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The texts in this file are those of the kubelet, the scheduler and the namespace controller. The API has no
// field for what they state. If a release of Kubernetes changes a text, a finding is less exact.

// pullError returns why the kubelet could not pull an image. While it waits, it repeats the last error after its
// reason.
func pullError(w *corev1.ContainerStateWaiting) string {
	if _, last, waits := strings.Cut(w.Message, "ErrImagePull: "); waits {
		return last
	}
	return w.Message
}

// taintNotTolerated reports whether the scheduler excluded nodes because of their taints.
func taintNotTolerated(scheduled *corev1.PodCondition) bool {
	return strings.Contains(scheduled.Message, "untolerated taint")
}

// mountsMissingObject reports whether a volume is not mounted because of a Secret or a ConfigMap. The note of the
// kubelet's Event names it.
func mountsMissingObject(note string) bool {
	return strings.Contains(note, `secret "`) || strings.Contains(note, `configmap "`)
}

var (
	resourceRemains  = regexp.MustCompile(`([a-z0-9.-]+?)\.? has \d+ resource instances`)
	finalizerRemains = regexp.MustCompile(`(\S+) in \d+ resource instances`)
)

// remainingResources returns the resources in the message of the condition NamespaceContentRemaining.
func remainingResources(message string) []string { return firstGroups(resourceRemains, message) }

// remainingFinalizers returns the finalizers in the message of the condition NamespaceFinalizersRemaining.
func remainingFinalizers(message string) []string { return firstGroups(finalizerRemains, message) }

// firstGroups returns the first group of every match.
func firstGroups(words *regexp.Regexp, text string) []string {
	var found []string
	for _, m := range words.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}
