package catalogsource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// servingTimeout is how long a replica may run without serving before that is a problem.
const servingTimeout = time.Minute

// maxListed limits the number of replicas in a message.
const maxListed = 8

// rolloutProblem is the reason why replicas do not serve.
type rolloutProblem struct{ reason, message string }

// catalogReplicas holds the Deployment and the pods of a catalog.
type catalogReplicas struct {
	source     *operatorsv1alpha1.CatalogSource
	deployment *appsv1.Deployment
	pods       []*corev1.Pod
	nodes      []*corev1.Node
	// waiting is the message while there is no Deployment yet.
	waiting string
}

// isComplete reports whether all replicas have the newest revision and are available.
func isComplete(d *appsv1.Deployment) bool {
	if d == nil || d.Spec.Replicas == nil {
		return false
	}
	want, status := *d.Spec.Replicas, &d.Status
	return status.ObservedGeneration >= d.Generation && status.UpdatedReplicas == want &&
		status.AvailableReplicas == want && status.Replicas == want
}

// serves reports whether a pod is ready.
func serves(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && podCondition(pod, corev1.PodReady) == corev1.ConditionTrue
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	if c := findPodCondition(pod, kind); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}

func findPodCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// available returns the condition with the ready replicas and their nodes.
func (r *catalogReplicas) available() metav1.Condition {
	c := metav1.Condition{Type: api.ConditionAvailable, Status: metav1.ConditionTrue, Reason: api.ReasonReplicasServe}
	serving := r.serving()
	count := len(serving)
	if count == 0 {
		c.Status, c.Reason = metav1.ConditionFalse, api.ReasonNoReplicaServes
	}
	if r.deployment == nil && count == 0 {
		c.Message = "no replica has been created"
		return c
	}
	c.Message = r.readyCount(count)
	if count > maxListed {
		serving = append(serving[:maxListed], "…")
	}
	if count > 0 {
		c.Message += ": " + strings.Join(serving, ", ")
	}
	for _, l := range r.unreachable() {
		c.Message += "; " + l.describe()
	}
	if deployment.HasSelection(r.deployment) {
		c.Message += "; filtered by annotation " + api.AnnotationCatalogFilter
	}
	if image := deployment.ImageOf(r.deployment); image != nil {
		c.Message += "; image " + image.Reference()
		if !image.IsFixed() {
			c.Message += " by its tag, because its digest is unknown or a policy of nodes names the tag"
		}
	}
	return c
}

// servedRevision returns the revision of the replicas if all have the newest one; otherwise empty.
func (r *catalogReplicas) servedRevision() string {
	if !isComplete(r.deployment) {
		return ""
	}
	for _, pod := range r.pods {
		if deployment.IsReplica(pod) && serves(pod) && pod.Labels[api.LabelPodSpecHash] == r.deployment.Spec.Template.Labels[api.LabelPodSpecHash] {
			return pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	}
	return ""
}

// newestRevision returns the revision of a replica with the newest template; empty if there is none.
func (r *catalogReplicas) newestRevision() string {
	for _, pod := range r.pods {
		if deployment.IsReplica(pod) && pod.Labels[api.LabelPodSpecHash] == r.deployment.Spec.Template.Labels[api.LabelPodSpecHash] {
			return pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	}
	return ""
}

// serving returns the ready pods that the Service selects, sorted. Pods that another controller
// starts to resolve a tag are not selected.
func (r *catalogReplicas) serving() []string {
	var serving []string
	for _, pod := range r.pods {
		selected := pod.Labels[api.LabelCatalogSource] != "" && pod.Labels[api.LabelManaged] == catalogs.LabelManagedValue
		if selected && serves(pod) {
			serving = append(serving, pod.Name+" on "+pod.Spec.NodeName)
		}
	}
	slices.Sort(serving)
	return serving
}

// readyCount describes how many of the wanted replicas are ready.
func (r *catalogReplicas) readyCount(ready int) string {
	want := 0
	if r.deployment != nil && r.deployment.Spec.Replicas != nil {
		want = int(*r.deployment.Spec.Replicas)
	}
	if ready > want {
		return fmt.Sprintf("%d replicas are ready, %d are wanted", ready, want)
	}
	return fmt.Sprintf("%d of %d replicas are ready", ready, want)
}

// progressing returns the condition of the rollout, and the trouble that blocks it, if any. next is
// when to check again.
func (r *catalogReplicas) progressing(now time.Time) (c metav1.Condition, t *rolloutProblem, next time.Duration) {
	c = metav1.Condition{Type: api.ConditionProgressing, Status: metav1.ConditionTrue, Reason: api.ReasonRollingOut}
	d := r.deployment
	switch {
	case d == nil:
		c.Reason, c.Message = api.ReasonAskingRegistry, r.waiting
		return c, nil, 0
	case isComplete(d):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, api.ReasonRolledOut, "all replicas are up to date"
		return c, nil, 0
	}
	t, next = r.rolloutProblem(now)
	if t != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, t.reason, t.message
		return c, t, next
	}
	unreachable := r.unreachable()
	switch want := *d.Spec.Replicas; {
	case d.Status.ObservedGeneration < d.Generation:
		c.Message = "new replicas are being created"
	case d.Status.UpdatedReplicas == want && d.Status.Replicas == want:
		c.Reason, c.Message = api.ReasonStartingReplicas, fmt.Sprintf("%d of %d replicas are available", d.Status.AvailableReplicas, want)
		if len(unreachable) > 0 {
			c.Reason = api.ReasonReplicaLost
		}
	default:
		c.Message = fmt.Sprintf("%d of %d replicas are up to date, %d replicas are available",
			d.Status.UpdatedReplicas, want, d.Status.AvailableReplicas)
	}
	for _, l := range unreachable {
		c.Message += "; " + l.nextStep()
	}
	return c, nil, next
}

// rolloutProblem returns the reason why the newest replicas do not serve; nil if there is none. next is
// when to check again.
func (r *catalogReplicas) rolloutProblem(now time.Time) (found *rolloutProblem, next time.Duration) {
	for i := range r.deployment.Status.Conditions {
		c := &r.deployment.Status.Conditions[i]
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			remedy := "; change the quota, policy or webhook that refuses it, or the CatalogSource"
			if refusal.Of(c.Message) == refusal.PodSecurityViolated {
				remedy = "; set spec.grpcPodConfig.securityContextConfig: restricted, or relax the PodSecurity level of the namespace"
			}
			return &rolloutProblem{c.Reason, c.Message + remedy}, 0
		}
	}
	for _, pod := range r.starting() {
		if r.isUnreachable(pod) {
			continue // The content is not the cause.
		}
		t, wait := podProblem(pod, r.content(), now)
		if t != nil {
			return t, 0
		}
		if wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
	}
	return nil, next
}

// content describes the content to serve.
func (r *catalogReplicas) content() string {
	var content string
	if image := deployment.ImageOf(r.deployment); image != nil {
		content = "image " + image.Spec
	} else {
		content = "ConfigMap " + r.source.Spec.ConfigMap
	}
	if deployment.HasSelection(r.deployment) {
		content += ", of which annotation " + api.AnnotationCatalogFilter + " selects a part,"
	}
	return content
}

// starting returns the replicas of the newest revision that do not serve, sorted.
func (r *catalogReplicas) starting() []*corev1.Pod {
	newest := r.deployment.Spec.Template.Labels[api.LabelPodSpecHash]
	pods := slices.DeleteFunc(slices.Clone(r.pods), func(pod *corev1.Pod) bool {
		return pod.Labels[api.LabelPodSpecHash] != newest || !deployment.IsReplica(pod) || pod.DeletionTimestamp != nil || serves(pod)
	})
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// podProblem returns the reason why a pod does not serve its content; nil if there is none.
func podProblem(pod *corev1.Pod, content string, now time.Time) (t *rolloutProblem, next time.Duration) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &rolloutProblem{c.Reason, fmt.Sprintf("pod %s: %s; add node capacity, or change spec.grpcPodConfig", pod.Name, c.Message)}, 0
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if t := containerProblem(pod.Name, content, &statuses[i]); t != nil {
				return t, 0
			}
		}
	}
	for i := range pod.Status.ContainerStatuses {
		running := pod.Status.ContainerStatuses[i].State.Running
		if running == nil {
			continue
		}
		if left := servingTimeout - now.Sub(notReadySince(pod, running)); left > 0 {
			return nil, left
		}
		return &rolloutProblem{api.ReasonNotServing, fmt.Sprintf(
			"pod %s runs but does not answer health checks at port %d; check that %s serves a catalog there, and the pod's log", pod.Name, catalogs.Port, content)}, 0
	}
	return nil, 0
}

// notReadySince returns since when a pod has not been ready: the start of its container, or the end of
// its readiness.
func notReadySince(pod *corev1.Pod, running *corev1.ContainerStateRunning) time.Time {
	if ready := findPodCondition(pod, corev1.PodReady); ready != nil && ready.LastTransitionTime.After(running.StartedAt.Time) {
		return ready.LastTransitionTime.Time
	}
	return running.StartedAt.Time
}

// signalled is added to the number of the signal that ended a container to make
// its exit code.
const signalled = 128

// containerProblem finds what keeps a container from running. Kubernetes goes back
// and forth between trying and waiting; what is told here stays the same.
func containerProblem(pod, content string, s *corev1.ContainerStatus) *rolloutProblem {
	const errPull, backOff, crash = "ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"
	ended := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated)
	if ended != nil && ended.ExitCode > signalled && s.RestartCount <= 1 {
		return nil // One kill does not show a problem of the content.
	}
	if ended != nil && !s.Ready && (s.RestartCount > 0 || ended.ExitCode != 0) {
		return &rolloutProblem{crash, fmt.Sprintf("pod %s: container %s ended with exit code %d: %s; check that %s holds a catalog that can be served",
			pod, s.Name, ended.ExitCode, cmp.Or(strings.TrimSpace(ended.Message), ended.Reason), content)}
	}
	waiting := s.State.Waiting
	if waiting == nil {
		return nil
	}
	switch waiting.Reason {
	case errPull, backOff:
		message := waiting.Message
		// While it waits, the kubelet repeats the last error after its reason. No field has that error alone.
		if _, last, waits := strings.Cut(message, errPull+": "); waits {
			message = last
		}
		return &rolloutProblem{errPull, fmt.Sprintf("pod %s: image of container %s cannot be pulled: %s; check spec.image and spec.secrets", pod, s.Name, message)}
	case "", "PodInitializing", "ContainerCreating":
		return nil
	default:
		return &rolloutProblem{waiting.Reason, fmt.Sprintf("pod %s: container %s: %s; check that %s can be run", pod, s.Name, waiting.Message, content)}
	}
}
