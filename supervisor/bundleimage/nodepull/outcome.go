package nodepull

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/bundlelog"
)

// maxText is the largest part of a text of a node that is repeated, in bytes.
const maxText = 500

// outcome is the result of a pod.
type outcome struct {
	// ended is true if the pod has printed the manifests. digest is then the digest of the image.
	ended  bool
	digest string
	// err is why it cannot print them; nil if it still can.
	err error
}

// outcomeOf returns the result of a pod for an image.
func outcomeOf(pod *corev1.Pod, reference string) outcome {
	if pod.DeletionTimestamp != nil {
		return outcome{err: failed(reference, "its pod was deleted")}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return outcome{err: failed(reference, "its pod failed: %s", said(pod.Status.Reason, pod.Status.Message))}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if err := containerError(pod, &status, reference); err != nil {
			return outcome{err: err}
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == containerBundle && status.State.Terminated != nil {
			digest, err := digestOf(pod, &status, reference)
			return outcome{ended: err == nil, digest: digest, err: err}
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return outcome{err: failed(reference, "its pod failed")}
	}
	return outcome{}
}

// containerError returns why a container of a pod cannot do its work; nil if it can or has done.
func containerError(pod *corev1.Pod, status *corev1.ContainerStatus, reference string) error {
	what := ""
	if status.Name != containerBundle {
		what = fmt.Sprintf("container %s with image %s (--registry-image): ", oneLine(status.Name), oneLine(status.Image))
	}
	if waiting := status.State.Waiting; waiting != nil && !isStarting(waiting.Reason) {
		return failed(reference, "%s%s", what, said(waiting.Reason, waiting.Message))
	}
	ended := status.State.Terminated
	if ended == nil || ended.ExitCode == 0 {
		return nil
	}
	if status.Name == containerBundle && ended.ExitCode == bundlelog.ExitUnusable {
		return &image.Error{Reference: reference, Reason: image.ReasonInvalid, Err: fmt.Errorf("%w: %s", errUnusable, said("", ended.Message))}
	}
	return failed(reference, "%sexit code %d on node %s: %s", what, ended.ExitCode, pod.Spec.NodeName, said(ended.Reason, ended.Message))
}

// isStarting reports whether a container with this reason for waiting may start without another attempt.
func isStarting(reason string) bool {
	return reason == "" || reason == "ContainerCreating" || reason == "PodInitializing"
}

// digestOf returns the digest of the image that a pod has printed. The runtime checks a digest in the reference. It must
// still be there: admission can replace images. Other digests come from the node.
func digestOf(pod *corev1.Pod, status *corev1.ContainerStatus, reference string) (string, error) {
	admitted := ""
	for _, c := range pod.Spec.Containers {
		if c.Name == containerBundle {
			admitted = c.Image
		}
	}
	if digest := digestIn(reference); digest != "" {
		if digestIn(admitted) != digest {
			return "", failed(reference, "the pod has image %q, which lacks the digest: admission must keep digests", oneLine(admitted))
		}
		return digest, nil
	}
	if digest := digestIn(status.ImageID); digest != "" {
		return digest, nil
	}
	return "", failed(reference, "node %s does not report the digest of the tag; name the image by digest", pod.Spec.NodeName)
}

// digestIn returns the digest at the end of a reference; empty if there is none.
func digestIn(reference string) string {
	_, digest, _ := strings.Cut(reference, "@")
	if _, err := v1.NewHash(digest); err != nil {
		return ""
	}
	return digest
}

// said returns a reason with a message of a node, each as one bounded line.
func said(reason, message string) string {
	reason, message = oneLine(reason), oneLine(message)
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	default:
		return reason + ": " + message
	}
}

// oneLine returns a text of a node as one line of at most maxText bytes and an ellipsis.
func oneLine(text string) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(line) > maxText {
		line = strings.ToValidUTF8(line[:maxText], "") + "…"
	}
	return line
}

// failed returns an error of a pull by a node, which may succeed later.
func failed(reference, format string, args ...any) error {
	return &image.Error{Reference: reference, Reason: image.ReasonNode, Err: fmt.Errorf("a node cannot pull it: "+format, args...)}
}

// pending returns what a pod waits for that has not ended in time.
func pending(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return said(c.Reason, c.Message)
		}
	}
	if pod.Spec.NodeName == "" {
		return "it was not scheduled"
	}
	return "it is in phase " + string(pod.Status.Phase) + " on node " + pod.Spec.NodeName
}
