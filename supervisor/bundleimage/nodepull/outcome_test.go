package nodepull

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles/image"
)

const (
	byTag    = "quay.io/acme/lamp:v1"
	byDigest = "quay.io/acme/lamp@" + digest
	other    = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

func waiting(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Image: "image-of-" + name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func exited(name string, code int32, message, id string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Image: "image-of-" + name, ImageID: id, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message},
	}}
}

func TestOutcomeOf(t *testing.T) {
	copied := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{exited(containerCopy, 0, "", "")}
	}
	bundle := func(s corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{s} }
	}
	program := func(s corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{s} }
	}
	phase := func(phase corev1.PodPhase, reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = phase, reason, message
		}
	}
	admitted := func(image string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
	}
	for _, c := range []struct {
		why, image string
		state      []func(*corev1.Pod)
		digest     string
		reason     image.Reason
		text       string
	}{
		{why: "new", image: byTag},
		{why: "starting", image: byTag, state: []func(*corev1.Pod){program(waiting(containerCopy, "PodInitializing", "")), bundle(waiting(containerBundle, "ContainerCreating", ""))}},
		{why: "copied", image: byTag, state: []func(*corev1.Pod){copied, bundle(waiting(containerBundle, "PodInitializing", ""))}},
		{
			why: "no pull", image: byTag, state: []func(*corev1.Pod){copied, bundle(waiting(containerBundle, "ErrImagePull", "401 \n Unauthorized"))},
			reason: image.ReasonNode, text: "a node cannot pull it: ErrImagePull: 401 Unauthorized",
		},
		{
			why: "a refused signature", image: byTag, state: []func(*corev1.Pod){copied, bundle(waiting(containerBundle, "SignatureValidationFailed", ""))},
			reason: image.ReasonNode, text: "a node cannot pull it: SignatureValidationFailed",
		},
		{
			why: "no program", image: byTag, state: []func(*corev1.Pod){program(waiting(containerCopy, "ImagePullBackOff", "away"))},
			reason: image.ReasonNode, text: "container copy-program with image image-of-copy-program (--registry-image): ImagePullBackOff: away",
		},
		{
			why: "an old program", image: byTag, state: []func(*corev1.Pod){copied, bundle(exited(containerBundle, 1, "unknown command", ""))},
			reason: image.ReasonNode, text: "exit code 1 on node n1: unknown command",
		},
		{
			why: "no bundle", image: byTag, state: []func(*corev1.Pod){copied, bundle(exited(containerBundle, 2, "no manifests", ""))},
			reason: image.ReasonInvalid, text: "its manifests cannot be used: no manifests",
		},
		{
			why: "late", image: byTag, state: []func(*corev1.Pod){copied, bundle(exited(containerBundle, 137, "", "")), phase(corev1.PodFailed, "DeadlineExceeded", "too long")},
			reason: image.ReasonNode, text: "its pod failed: DeadlineExceeded: too long",
		},
		{why: "failed", image: byTag, state: []func(*corev1.Pod){phase(corev1.PodFailed, "", "")}, reason: image.ReasonNode, text: "its pod failed"},
		{
			why: "deleted", image: byTag, reason: image.ReasonNode, text: "its pod was deleted",
			state: []func(*corev1.Pod){bundle(exited(containerBundle, 0, "", "quay.io/acme/lamp@"+digest)), func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }},
		},
		{why: "a tag", image: byTag, state: []func(*corev1.Pod){copied, bundle(exited(containerBundle, 0, "", "quay.io/acme/lamp@"+digest))}, digest: digest},
		{
			why: "a tag without digest", image: byTag, state: []func(*corev1.Pod){bundle(exited(containerBundle, 0, "", digest))},
			reason: image.ReasonNode, text: "node n1 does not report the digest of the tag; name the image by digest",
		},
		{why: "a digest", image: byDigest, state: []func(*corev1.Pod){bundle(exited(containerBundle, 0, "", digest))}, digest: digest},
		{why: "another digest of the same files", image: byDigest, state: []func(*corev1.Pod){bundle(exited(containerBundle, 0, "", "quay.io/acme/lamp@"+other))}, digest: digest},
		{why: "a rewritten registry", image: byDigest, state: []func(*corev1.Pod){admitted("mirror.test/lamp@" + digest), bundle(exited(containerBundle, 0, "", ""))}, digest: digest},
		{
			why: "a rewritten digest", image: byDigest, state: []func(*corev1.Pod){admitted("mirror.test/lamp@" + other), bundle(exited(containerBundle, 0, "", "mirror.test/lamp@"+other))},
			reason: image.ReasonNode, text: "the pod has image \"mirror.test/lamp@" + other + "\", which lacks the digest",
		},
		{
			why: "a digest that became a tag", image: byDigest, state: []func(*corev1.Pod){admitted("mirror.test/lamp:v1"), bundle(exited(containerBundle, 0, "", "mirror.test/lamp@"+digest))},
			reason: image.ReasonNode, text: "admission must keep digests",
		},
	} {
		pod := podOf(t, c.image, shop(nil), settings(), time.Minute)
		pod.Spec.NodeName = "n1"
		for _, change := range c.state {
			change(pod)
		}
		got := outcomeOf(pod, c.image)
		if got.ended != (c.digest != "") || got.digest != c.digest || image.ReasonOf(got.err) != c.reason {
			t.Errorf("%s: %+v", c.why, got)
		}
		if got.err != nil && !strings.Contains(got.err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", c.why, got.err, c.text)
		}
	}
}

func TestPending(t *testing.T) {
	pod := podOf(t, byTag, shop(nil), settings(), time.Minute)
	if got := pending(pod); got != "it was not scheduled" {
		t.Error(got)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}
	if got := pending(pod); got != "Unschedulable: 0/3 nodes are available" {
		t.Error(got)
	}
	pod.Status.Conditions, pod.Spec.NodeName, pod.Status.Phase = nil, "n1", corev1.PodPending
	if got := pending(pod); got != "it is in phase Pending on node n1" {
		t.Error(got)
	}
}

// FuzzOutcomeOf reads statuses with any content. A result for a reference by digest has this digest.
func FuzzOutcomeOf(f *testing.F) {
	f.Add([]byte(`{"phase":"Succeeded","containerStatuses":[{"name":"bundle","imageID":"a@`+other+`","state":{"terminated":{"exitCode":0}}}]}`), byTag, byTag)
	f.Add([]byte(`{"containerStatuses":[{"name":"bundle","state":{"waiting":{"reason":"ErrImagePull","message":"\u0000"}}}]}`), byDigest, byDigest)
	f.Add(fmt.Appendf(nil, `{"initContainerStatuses":[{"name":%[1]q,"image":%[1]q,"state":{"waiting":{"reason":%[1]q,"message":%[1]q}}}]}`,
		strings.Repeat("a", 10*maxText)), byTag, byTag)
	f.Fuzz(func(t *testing.T, status []byte, reference, admitted string) {
		pod := podOf(t, admitted, shop(nil), settings(), time.Minute)
		if json.Unmarshal(status, &pod.Status) != nil {
			return
		}
		got := outcomeOf(pod, reference)
		if got.ended && (got.err != nil || got.digest == "" || digestIn(reference) != "" && (got.digest != digestIn(reference) || digestIn(admitted) != got.digest)) {
			t.Errorf("%q as %q: %+v", reference, admitted, got)
		}
		if got.err != nil && len(got.err.Error()) > 5*maxText+4*len(reference) {
			t.Errorf("the error has %d bytes", len(got.err.Error()))
		}
	})
}
