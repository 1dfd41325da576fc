package explain

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// podRule returns one kind of problem of a pod; nil if the pod does not have it.
type podRule func(*search, *corev1.Pod) *Finding

// podRules returns the rules in their order: what keeps a pod from a node comes before what keeps its containers
// from running.
func podRules() []podRule {
	return []podRule{onLostNode, unschedulable, imageNotPulled, configMissing, outOfMemory, crashing, volumeMissing, probeFailing}
}

// podFinding returns the most basic problem of some pods; nil if there is none.
func podFinding(s *search, pods []*corev1.Pod) *Finding {
	if found := podFindings(s, pods); len(found) > 0 {
		return found[0]
	}
	return nil
}

// podFindings returns the problems of some pods, each code once and the most basic first. Each pod has at most one.
func podFindings(s *search, pods []*corev1.Pod) []*Finding {
	var found []*Finding
	explained := map[string]bool{}
	for _, rule := range podRules() {
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil || isReady(pod) || explained[pod.Name] {
				continue
			}
			f := rule(s.follow(refTo(KindPod, pod), string(pod.Status.Phase), whyNotReady(pod)), pod)
			if f == nil {
				continue
			}
			explained[pod.Name] = true
			if !slices.ContainsFunc(found, func(other *Finding) bool { return other.Code == f.Code }) {
				found = append(found, f)
			}
		}
	}
	return found
}

// podCondition returns the condition of a type; nil if there is none.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// isReady reports whether a pod is ready.
func isReady(pod *corev1.Pod) bool {
	c := podCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// whyNotReady returns what the conditions of a pod state about it; empty for a ready one.
func whyNotReady(pod *corev1.Pod) string {
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady} {
		if c := podCondition(pod, kind); c != nil && c.Status != corev1.ConditionTrue {
			return cmp.Or(c.Message, c.Reason)
		}
	}
	return ""
}

// onLostNode returns the finding about a pod on a lost node.
func onLostNode(s *search, pod *corev1.Pod) *Finding {
	if pod.Spec.NodeName == "" {
		return nil
	}
	s.needs("nodes", "")
	node := find(s.Nodes, Ref{Name: pod.Spec.NodeName})
	if node == nil || lost(node) == nil {
		return nil
	}
	return lostNodeFinding(s, node, fmt.Sprintf("Pod %s/%s is on it", pod.Namespace, pod.Name))
}

// lost returns the condition of a node that is not ready; nil for a ready one.
func lost(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// lostNodeFinding returns the finding about a lost node.
func lostNodeFinding(s *search, node *corev1.Node, what string) *Finding {
	c := lost(node)
	at := s.follow(refTo(KindNode, node), "NotReady", c.Message)
	return at.finding(CodeNodeLost, Wrong, fmt.Sprintf("Node %s is lost (Ready is %s%s), and %s", node.Name, c.Status, since(&c.LastTransitionTime), what)).
		withCommands(kubectl("describe", at.current(), ""))
}

// unschedulable returns the finding about a pod without a node. If its nodeSelector selects a lost node, that is the
// cause.
func unschedulable(s *search, pod *corev1.Pod) *Finding {
	c := podCondition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse {
		return nil
	}
	if len(pod.Spec.NodeSelector) > 0 && taintNotTolerated(c) {
		s.needs("nodes", "")
		for i := range s.Nodes {
			node := &s.Nodes[i]
			if labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)) && lost(node) != nil {
				return lostNodeFinding(s, node, fmt.Sprintf("the nodeSelector of Pod %s/%s requires it", pod.Namespace, pod.Name))
			}
		}
	}
	return s.finding(CodePodUnschedulable, Wrong, s.current().String()+" cannot be scheduled: "+cmp.Or(c.Message, c.Reason)).
		withCommands(kubectl("describe", s.current(), ""))
}

// containers returns the states of all containers of a pod, init containers first.
func containers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// waitingFor returns the first container that waits for one of some reasons; nil if there is none.
func waitingFor(pod *corev1.Pod, reasons ...string) *corev1.ContainerStatus {
	all := containers(pod)
	for i := range all {
		if w := all[i].State.Waiting; w != nil && slices.Contains(reasons, w.Reason) {
			return &all[i]
		}
	}
	return nil
}

// imageNotPulled returns the finding about an image that cannot be pulled.
func imageNotPulled(s *search, pod *corev1.Pod) *Finding {
	c := waitingFor(pod, "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError")
	if c == nil {
		return nil
	}
	why := pullError(c.State.Waiting)
	if why == "" {
		why = s.warning(s.current(), "Failed")
	}
	why = cmp.Or(why, c.State.Waiting.Reason)
	// It names the Secrets of the pod that do not exist.
	if missing := s.warning(s.current(), "FailedToRetrieveImagePullSecret"); missing != "" {
		why += "; " + missing
	}
	return s.finding(CodeImagePullFailed, Wrong, fmt.Sprintf("%s: image %s of container %s cannot be pulled: %s",
		s.current(), imageOf(pod, c), c.Name, why)).withCommands(kubectl("describe", s.current(), ""))
}

// imageOf returns the image of a container as the spec of its pod has it.
func imageOf(pod *corev1.Pod, status *corev1.ContainerStatus) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == status.Name {
			return c.Image
		}
	}
	return status.Image
}

// configMissing returns the finding about a container that cannot be created.
func configMissing(s *search, pod *corev1.Pod) *Finding {
	c := waitingFor(pod, "CreateContainerConfigError", "CreateContainerError")
	if c == nil {
		return nil
	}
	return s.finding(CodeSecretOrConfigMapMissing, Wrong, fmt.Sprintf("%s: container %s cannot be created: %s", s.current(), c.Name, c.State.Waiting.Message)).
		withCommands(kubectl("describe", s.current(), ""))
}

// ended returns how a container last ended; nil if it is ready.
func ended(c *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if c.Ready {
		return nil
	}
	return cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
}

// outOfMemory returns the finding about a container that was killed because of its memory limit.
func outOfMemory(s *search, pod *corev1.Pod) *Finding {
	all := containers(pod)
	for i := range all {
		if t := ended(&all[i]); t != nil && t.Reason == "OOMKilled" {
			return s.finding(CodeOutOfMemory, Wrong, fmt.Sprintf("%s: container %s was killed because it used more memory than its limit%s (OOMKilled, %d restarts)",
				s.current(), all[i].Name, memoryLimit(pod, all[i].Name), all[i].RestartCount)).withCommands(kubectl("describe", s.current(), ""))
		}
	}
	return nil
}

// memoryLimit returns the memory limit of a container as a part of a sentence; empty if it has none.
func memoryLimit(pod *corev1.Pod, container string) string {
	for i := range pod.Spec.Containers {
		if limit := pod.Spec.Containers[i].Resources.Limits.Memory(); pod.Spec.Containers[i].Name == container && !limit.IsZero() {
			return " of " + limit.String()
		}
	}
	return ""
}

// crashing returns the finding about a container that repeatedly ends.
func crashing(s *search, pod *corev1.Pod) *Finding {
	all := containers(pod)
	for i := range all {
		c := &all[i]
		t := ended(c)
		waits := c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
		if t == nil && !waits || t != nil && !waits && c.RestartCount == 0 && t.ExitCode == 0 {
			continue
		}
		how := "exits repeatedly"
		if t != nil {
			how = fmt.Sprintf("ended with exit code %d, %s", t.ExitCode, cmp.Or(oneLine(t.Message), t.Reason, "without a message"))
		}
		return s.finding(CodeContainerCrashing, Wrong, fmt.Sprintf("%s: container %s %s (%d restarts)", s.current(), c.Name, how, c.RestartCount)).
			withCommands(fmt.Sprintf("kubectl -n %s logs %s -c %s --previous", pod.Namespace, pod.Name, c.Name))
	}
	return nil
}

// volumeMissing returns the finding about a volume that cannot be mounted.
func volumeMissing(s *search, pod *corev1.Pod) *Finding {
	if pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName == "" {
		return nil
	}
	message := s.warning(s.current(), "FailedMount", "FailedAttachVolume")
	if message == "" {
		return nil
	}
	code := CodeVolumeMountFailed
	if mountsMissingObject(message) {
		code = CodeSecretOrConfigMapMissing
	}
	return s.finding(code, Wrong, s.current().String()+": "+message).withCommands(kubectl("describe", s.current(), ""))
}

// probeFailing returns the finding about a container that runs and is not ready.
func probeFailing(s *search, pod *corev1.Pod) *Finding {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running == nil || c.Ready {
			continue
		}
		message := s.warning(s.current(), "Unhealthy")
		if message == "" {
			continue
		}
		return s.finding(CodeProbeFailing, Wrong, fmt.Sprintf("%s: container %s runs but is not ready: %s", s.current(), c.Name, message)).
			withCommands(fmt.Sprintf("kubectl -n %s logs %s -c %s", pod.Namespace, pod.Name, c.Name))
	}
	return nil
}

// deploymentCondition returns the condition of a type; nil if there is none.
func deploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == kind {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

// deploymentFinding returns what keeps a Deployment from being available; nil if it is available, or if nothing
// explains it.
func deploymentFinding(s *search, d *appsv1.Deployment) *Finding {
	available := deploymentCondition(d, appsv1.DeploymentAvailable)
	says := ""
	if available != nil && available.Status != corev1.ConditionTrue {
		says = available.Message
	}
	at := s.follow(refTo(KindDeployment, d), fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, wanted(d)), says)
	if c := deploymentCondition(d, appsv1.DeploymentReplicaFailure); c != nil && c.Status == corev1.ConditionTrue {
		return refusedPodsFinding(at, c.Message)
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil // the API server lets no such Deployment in
	}
	if f := podFinding(at, at.pods(d.Namespace, selector)); f != nil {
		return f
	}
	progressing := deploymentCondition(d, appsv1.DeploymentProgressing)
	if progressing == nil || progressing.Reason != "ProgressDeadlineExceeded" {
		return nil
	}
	return at.finding(CodeDeploymentNotAvailable, Wrong, fmt.Sprintf("%s is not available: %s", at.current(), cmp.Or(says, progressing.Message))).
		withCommands(kubectl("describe", at.current(), ""))
}

// shortageFinding returns the finding about a Deployment that lacks replicas; nil if it has all.
func shortageFinding(s *search, d *appsv1.Deployment) *Finding {
	ready, all := d.Status.ReadyReplicas, wanted(d)
	at := s.follow(refTo(KindDeployment, d), fmt.Sprintf("%d/%d", ready, all), "")
	if all == 0 {
		return at.finding(CodeScaledDown, Wrong, at.current().String()+" is scaled to 0 replicas (spec.replicas), so the operator does not run").
			withCommands(kubectl("scale", at.current(), "--replicas=1"))
	}
	if ready >= all {
		return nil
	}
	f := deploymentFinding(s, d)
	if f == nil {
		f = at.finding(CodeDeploymentNotAvailable, Waiting, fmt.Sprintf("%s has %d of %d replicas ready", at.current(), ready, all)).
			withCommands(kubectl("describe", at.current(), ""))
	}
	if c := deploymentCondition(d, appsv1.DeploymentAvailable); c != nil && c.Status == corev1.ConditionTrue {
		// The operator runs, so the problem blocks nothing.
		f.Severity = Note
	}
	return f
}

// wanted returns the number of replicas that a Deployment specifies.
func wanted(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// refusedPodsFinding returns the finding about pods that the API server refuses.
func refusedPodsFinding(s *search, message string) *Finding {
	code := codeOfRefusal(message)
	if code == "" || code == CodePermissionDenied || code == CodeObjectInvalid {
		code = CodePodsRefused
	}
	f := refusalFinding(s, code, Wrong, s.current().String()+": the API server refuses its pods: "+message, "")
	if code != CodeLimitRangeViolated && nameLimitRange(s, f) {
		f.Code = CodeLimitRangeViolated
	}
	return f.withCommands(kubectl("describe", s.current(), ""))
}
