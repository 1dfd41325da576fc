package catalogsource

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// replica returns a replica of the newest revision.
func replica(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	labels := deployment.ReplicaLabels("shop")
	labels[api.LabelPodSpecHash] = "new"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.PodSpec{NodeName: "node-" + name}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func serving(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

func older(pod *corev1.Pod) { pod.Labels[api.LabelPodSpecHash] = "old" }

func going(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: noon} }

func container(s corev1.ContainerStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		s.Name = "registry-server"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{s}
	}
}

func waits(reason, message string) func(*corev1.Pod) {
	return container(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
}

func ended(code int32, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: message}
}

func since(minutes int) func(*corev1.Pod) {
	return container(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{
		StartedAt: metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute)),
	}}})
}

// silent makes a replica unreachable since one minute before noon.
func silent(pod *corev1.Pod) {
	since(60)(pod)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReplicaUnreachable", LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute)),
	})
}

// unready makes a replica unready for a number of seconds.
func unready(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
			LastTransitionTime: metav1.NewTime(noon.Add(-time.Duration(seconds) * time.Second)),
		})
	}
}

// lostNode returns a node that is not ready.
func lostNode(name string) []*corev1.Node {
	return []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}},
	}}}
}

// shortOne makes one replica of a completed rollout unavailable.
func shortOne(d *appsv1.Deployment) { complete(d); d.Status.AvailableReplicas = 1 }

// rolling returns a Deployment of two replicas during a rollout.
func rolling(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 2}}
	d.Annotations = map[string]string{api.AnnotationImage: "shops/shop:1", api.AnnotationImageDigest: someDigest}
	d.Spec.Template.Labels = map[string]string{api.LabelPodSpecHash: "new"}
	for _, c := range change {
		c(d)
	}
	return d
}

func complete(d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
}

func TestAvailable(t *testing.T) {
	const image = "; image shops/shop@" + someDigest
	for _, tt := range []struct {
		reason     string
		deployment *appsv1.Deployment
		pods       []*corev1.Pod
		want       string
	}{
		{"nothing yet", nil, nil, "False NoReplicaServes no replica has been created"},
		{"starting", rolling(), []*corev1.Pod{replica("a")}, "False NoReplicaServes 0 of 2 replicas are ready" + image},
		{"one", rolling(), []*corev1.Pod{replica("a", serving), replica("b")}, "True ReplicasServe 1 of 2 replicas are ready: a on node-a" + image},
		{"all", rolling(complete), []*corev1.Pod{replica("b", serving), replica("a", serving)}, "True ReplicasServe 2 of 2 replicas are ready: a on node-a, b on node-b" + image},
		{"one that goes", rolling(), []*corev1.Pod{replica("a", serving), replica("b", serving, going)}, "True ReplicasServe 1 of 2 replicas are ready: a on node-a" + image},
		{
			"surge", rolling(),
			[]*corev1.Pod{replica("a", serving), replica("b", serving), replica("c", serving)},
			"True ReplicasServe 3 replicas are ready, 2 are wanted: a on node-a, b on node-b, c on node-c" + image,
		},
		{
			"another controller's poll", rolling(),
			[]*corev1.Pod{replica("a", serving, func(p *corev1.Pod) {
				p.Labels = map[string]string{"olm.catalogSource": "", "olm.managed": "true", api.LabelUpdate: "shop"}
			})},
			"False NoReplicaServes 0 of 2 replicas are ready" + image,
		},
		{
			"one lost", rolling(shortOne),
			[]*corev1.Pod{replica("a", serving), replica("b", silent)},
			"True ReplicasServe 1 of 2 replicas are ready: a on node-a; b on node-b has not answered since 2026-03-01T11:59:00Z and was removed from the Service" + image,
		},
		{
			"by tag", rolling(func(d *appsv1.Deployment) { delete(d.Annotations, api.AnnotationImageDigest) }), nil,
			"False NoReplicaServes 0 of 2 replicas are ready; image shops/shop:1 by its tag, because its digest is unknown or a policy of nodes names the tag",
		},
	} {
		c := (&catalogReplicas{deployment: tt.deployment, pods: tt.pods}).available()
		if diff := cmp.Diff(tt.want, string(c.Status)+" "+c.Reason+" "+c.Message); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

// progressingTest is a case of TestProgressing.
type progressingTest struct {
	reason     string
	deployment *appsv1.Deployment
	pods       []*corev1.Pod
	nodes      []*corev1.Node
	want       string
	next       time.Duration
}

// Messages of TestProgressing.
const (
	pullMessage  = `failed to pull and unpack image "shops/shop:9": not found`
	pullProblem  = "False ErrImagePull pod a: image of container registry-server cannot be pulled: " + pullMessage + "; check spec.image and spec.secrets"
	crashProblem = "False CrashLoopBackOff pod a: container registry-server ended with exit code 1: no such catalog; check that image shops/shop:1 holds a catalog that can be served"
)

// rolloutTests are about the progress of a rollout.
var rolloutTests = []progressingTest{
	{reason: "nothing yet", want: "True AskingRegistry asking"},
	{reason: "complete", deployment: rolling(complete), want: "False RolledOut all replicas are up to date"},
	{reason: "not noticed", deployment: rolling(complete, func(d *appsv1.Deployment) { d.Generation = 2 }), want: "True RollingOut new replicas are being created"},
	{
		reason: "a replica was lost", deployment: rolling(complete, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }),
		want: "True StartingReplicas 1 of 2 replicas are available",
	},
	{reason: "under way", deployment: rolling(), want: "True RollingOut 1 of 2 replicas are up to date, 2 replicas are available"},
}

// containerTests are about containers that do not serve.
var containerTests = []progressingTest{
	{reason: "pull", deployment: rolling(), pods: []*corev1.Pod{replica("a", waits("ErrImagePull", pullMessage))}, want: pullProblem},
	{
		reason: "pull again says the same", deployment: rolling(), want: pullProblem,
		pods: []*corev1.Pod{replica("a", waits("ImagePullBackOff", `Back-off pulling image "shops/shop:9": ErrImagePull: `+pullMessage))},
	},
	{
		reason: "killed once", deployment: rolling(complete, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }),
		pods: []*corev1.Pod{replica("a", container(corev1.ContainerStatus{RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: ended(137, "Serving")}}))},
		want: "True StartingReplicas 1 of 2 replicas are available",
	},
	{
		reason: "crash", deployment: rolling(), want: crashProblem,
		pods: []*corev1.Pod{replica("a", container(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(1, "no such catalog\n")}}))},
	},
	{
		reason: "crash, waits", deployment: rolling(), want: crashProblem,
		pods: []*corev1.Pod{replica("a", container(corev1.ContainerStatus{
			RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}},
			LastTerminationState: corev1.ContainerState{Terminated: ended(1, "no such catalog")},
		}))},
	},
	{
		reason: "crash, tries again", deployment: rolling(), want: crashProblem,
		pods: []*corev1.Pod{replica("a", container(corev1.ContainerStatus{
			RestartCount: 3, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			LastTerminationState: corev1.ContainerState{Terminated: ended(1, "no such catalog")},
		}))},
	},
	{
		reason: "cannot be made", deployment: rolling(), pods: []*corev1.Pod{replica("a", waits("CreateContainerError", "no such user"))},
		want: "False CreateContainerError pod a: container registry-server: no such user; check that image shops/shop:1 can be run",
	},
	{reason: "is being made", deployment: rolling(), pods: []*corev1.Pod{replica("a", waits("ContainerCreating", ""))}, want: "True RollingOut 1 of 2 replicas are up to date, 2 replicas are available"},
	{reason: "starting", deployment: rolling(), pods: []*corev1.Pod{replica("a", since(0))}, next: time.Minute, want: "True RollingOut 1 of 2 replicas are up to date, 2 replicas are available"},
	{
		reason: "port closed", deployment: rolling(), pods: []*corev1.Pod{replica("a", since(2))},
		want: "False NotServing pod a runs but does not answer health checks at port 50051; check that image shops/shop:1 serves a catalog there, and the pod's log",
	},
	{
		reason: "old and leaving replicas do not matter", deployment: rolling(), want: "True RollingOut 1 of 2 replicas are up to date, 2 replicas are available",
		pods: []*corev1.Pod{replica("a", older, waits("ErrImagePull", pullMessage)), replica("b", going, waits("ErrImagePull", pullMessage))},
	},
}

// lostReplicaTests are about replicas that do not answer.
var lostReplicaTests = []progressingTest{
	{
		reason: "lost", deployment: rolling(shortOne), pods: []*corev1.Pod{replica("a", serving), replica("b", silent)},
		want: "True ReplicaLost 1 of 2 replicas are available; waiting for node node-b: replica b does not answer; it is replaced when the node is NotReady",
	},
	{
		reason: "lost with its node", deployment: rolling(shortOne), pods: []*corev1.Pod{replica("a", serving), replica("b", since(60), unready(120))}, nodes: lostNode("node-b"),
		want: "True ReplicaLost 1 of 2 replicas are available; node node-b is NotReady: replica b is being replaced",
	},
	{
		reason: "lost in a roll-out", deployment: rolling(), pods: []*corev1.Pod{replica("a", silent)},
		want: "True RollingOut 1 of 2 replicas are up to date, 2 replicas are available; waiting for node node-a: replica a does not answer; it is replaced when the node is NotReady",
	},
	{
		reason: "has just ceased to answer", deployment: rolling(shortOne), pods: []*corev1.Pod{replica("b", since(60), unready(20))}, next: 40 * time.Second,
		want: "True StartingReplicas 1 of 2 replicas are available",
	},
	{
		reason: "does not answer any more", deployment: rolling(shortOne), pods: []*corev1.Pod{replica("b", since(60), unready(70))},
		want: "False NotServing pod b runs but does not answer health checks at port 50051; check that image shops/shop:1 serves a catalog there, and the pod's log",
	},
}

// refusedPodTests are about pods that are refused or not scheduled.
var refusedPodTests = []progressingTest{
	{
		reason: "forbidden", deployment: rolling(func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota"}}
		}), want: "False FailedCreate exceeded quota; change the quota, policy or webhook that refuses it, or the CatalogSource",
	},
	{
		reason: "not restricted", deployment: rolling(func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
				Message: `pods "shop-1" is forbidden: violates PodSecurity "restricted:latest"`,
			}}
		}), want: `False FailedCreate pods "shop-1" is forbidden: violates PodSecurity "restricted:latest"; ` +
			"set spec.grpcPodConfig.securityContextConfig: restricted, or relax the PodSecurity level of the namespace",
	},
	{
		reason: "no room", deployment: rolling(), want: "False Unschedulable pod a: 0/3 nodes are available; add node capacity, or change spec.grpcPodConfig",
		pods: []*corev1.Pod{replica("a", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}
		})},
	},
}

func TestProgressing(t *testing.T) {
	for _, tt := range slices.Concat(rolloutTests, containerTests, lostReplicaTests, refusedPodTests) {
		c, found, next := (&catalogReplicas{deployment: tt.deployment, pods: tt.pods, nodes: tt.nodes, waiting: "asking"}).progressing(noon)
		if diff := cmp.Diff(tt.want, string(c.Status)+" "+c.Reason+" "+c.Message); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
		if next != tt.next {
			t.Errorf("%s: next look in %s, want %s", tt.reason, next, tt.next)
		}
		if stuck := c.Status == metav1.ConditionFalse && c.Reason != api.ReasonRolledOut; stuck != (found != nil) {
			t.Errorf("%s: problem %v", tt.reason, found)
		}
	}
}

func TestCleanupOf(t *testing.T) {
	source := shop()
	inherited := func(change ...func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: deployment.ServiceLabels("shop"), OwnerReferences: []metav1.OwnerReference{{
			Kind: "CatalogSource", Name: "shop", UID: source.UID, Controller: new(true),
		}}}}
		for _, c := range change {
			c(pod)
		}
		return pod
	}
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	ofSet := func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" }
	for _, tt := range []struct {
		reason   string
		pod      *corev1.Pod
		replaced bool
		want     cleanup
	}{
		{reason: "ours", pod: replica("a"), replaced: true, want: keepPod},
		{reason: "ours, evicted", pod: replica("a", failed), want: deletePod},
		{reason: "ours, going", pod: replica("a", failed, going), want: keepPod},
		{reason: "inherited, still needed", pod: inherited(), want: keepPod},
		{reason: "inherited", pod: inherited(), replaced: true, want: deletePod},
		{reason: "inherited, dead", pod: inherited(failed), want: deletePod},
		{reason: "another controller's poll", pod: inherited(func(p *corev1.Pod) { p.Labels = map[string]string{api.LabelUpdate: "shop"} }), want: deletePod},
		{reason: "another make, still needed", pod: inherited(ofSet), want: keepPod},
		{reason: "another make", pod: inherited(ofSet), replaced: true, want: deleteSet},
		{reason: "another CatalogSource of the same name", pod: inherited(func(p *corev1.Pod) { p.OwnerReferences[0].UID = "u-2" }), replaced: true, want: keepPod},
		{reason: "without an owner", pod: inherited(func(p *corev1.Pod) { p.OwnerReferences = nil }), replaced: true, want: keepPod},
	} {
		if got := cleanupOf(tt.pod, source, tt.replaced); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.reason, got, tt.want)
		}
	}
}
