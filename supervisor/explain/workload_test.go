package explain_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/explain"
)

func TestExplainPods(t *testing.T) {
	t.Parallel()
	const pod = "Pod shop/lamp-1"
	crash := func(reason string, code int32) func(*clusterState) {
		return container(func(s *corev1.ContainerStatus) {
			s.RestartCount = 4
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: "no bulb\nin the socket"}
		})
	}
	check(t, []explained{
		{
			reason: "an image cannot be pulled", state: explain.Broken, code: explain.CodeImagePullFailed, object: pod,
			change: waits("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: not found`), summary: []string{pod + ": image registry.example.com/lamp:1 of container main cannot be pulled: not found"},
		},
		{
			reason: "an image whose pull secret is missing", state: explain.Broken, code: explain.CodeImagePullFailed, object: pod,
			change:  all(waits("ErrImagePull", "unauthorized"), warns("Pod", "lamp-1", "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (mirror)")),
			summary: []string{"cannot be pulled: unauthorized; Unable to retrieve some image pull secrets (mirror)"},
		},
		{
			reason: "a crash loop", state: explain.Broken, code: explain.CodeContainerCrashing, object: pod,
			change: crash("Error", 3), summary: []string{"container main ended with exit code 3, no bulb in the socket (4 restarts)"},
		},
		{
			reason: "out of memory", state: explain.Broken, code: explain.CodeOutOfMemory, object: pod,
			change: crash("OOMKilled", 137), summary: []string{"used more memory than its limit", "OOMKilled"},
		},
		{
			reason: "a Secret for the environment", state: explain.Broken, code: explain.CodeSecretOrConfigMapMissing, object: pod,
			change: waits("CreateContainerConfigError", `secret "oil" not found`), summary: []string{`secret "oil" not found`},
		},
		{
			reason: "a Secret for a volume", state: explain.Broken, code: explain.CodeSecretOrConfigMapMissing, object: pod,
			change:  all(installing, warns("Pod", "lamp-1", "FailedMount", `MountVolume.SetUp failed for volume "oil" : secret "oil" not found`)),
			summary: []string{`secret "oil" not found`},
		},
		{
			reason: "a volume", state: explain.Broken, code: explain.CodeVolumeMountFailed, object: pod,
			change: all(installing, warns("Pod", "lamp-1", "FailedAttachVolume", "disk is elsewhere")), summary: []string{"disk is elsewhere"},
		},
		{
			reason: "no node takes it", state: explain.Broken, code: explain.CodePodUnschedulable, object: pod,
			change: all(installing, func(o *clusterState) {
				o.pod().Spec.NodeName = ""
				o.pod().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu."}}
			}),
			summary: []string{"3 Insufficient cpu"},
		},
		{
			reason: "its node is lost", state: explain.Broken, code: explain.CodeNodeLost, object: "Node n1",
			change: all(installing, func(o *clusterState) { o.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown }), summary: []string{"Node n1 is lost"},
		},
		{
			reason: "a probe fails", state: explain.Broken, code: explain.CodeProbeFailing, object: pod,
			change: all(container(func(s *corev1.ContainerStatus) { s.State.Running = &corev1.ContainerStateRunning{} }),
				warns("Pod", "lamp-1", "Unhealthy", "Readiness probe failed: 503")),
			summary: []string{"Readiness probe failed: 503"},
		},
		{
			reason: "a quota", state: explain.Broken, code: explain.CodeQuotaExceeded, object: "Deployment shop/lamp",
			change: refused(`pods "lamp-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0`), summary: []string{"Deployment shop/lamp", "exceeded quota: small"},
		},
		{
			reason: "PodSecurity", state: explain.Broken, code: explain.CodePodSecurityRefused, object: "Deployment shop/lamp",
			change: refused(`pods "lamp-x" is forbidden: violates PodSecurity "restricted:latest": privileged`), summary: []string{"violates PodSecurity"},
		},
		{
			reason: "a quota that wants limits", state: explain.Broken, code: explain.CodeResourcesRequired, object: "Deployment shop/lamp",
			change:  refused(`pods "lamp-x" is forbidden: failed quota: small: must specify limits.memory for: operator; requests.cpu for: operator`),
			summary: []string{"must specify limits.memory for: operator"}, remedy: "spec.config.resources of the Subscription, or add a LimitRange",
		},
		{
			reason: "a limit of the pod's own", state: explain.Broken, code: explain.CodePodsRefused, object: "Deployment shop/lamp",
			change:  refused(`Pod "lamp-x" is invalid: spec.containers[0].resources.requests: Invalid value: "128Mi": must be less than or equal to memory limit of 64Mi`),
			summary: []string{"memory limit of 64Mi"},
		},
		{
			reason: "a webhook that does not answer", state: explain.Broken, code: explain.CodeWebhookUnavailable, object: "Deployment shop/lamp",
			change:  refused(`Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: Post "https://pods.shop.svc:443/": dial tcp 10.0.0.1:443: connect: connection refused`),
			summary: []string{"connection refused", "the server of webhook pods.example.com does not answer"}, remedy: "webhook pods.example.com",
		},
		{
			reason: "a webhook", state: explain.Broken, code: explain.CodeAdmissionRefused, object: "Deployment shop/lamp",
			change: refused(`admission webhook "pods.example.com" denied the request: no`), summary: []string{"pods.example.com"},
		},
		{
			reason: "no ServiceAccount", state: explain.Broken, code: explain.CodeServiceAccountMissing, object: "Deployment shop/lamp",
			change: refused(`pods "lamp-x" is forbidden: error looking up service account shop/lamp: serviceaccount "lamp" not found`), summary: []string{`serviceaccount "lamp" not found`},
		},
		{
			reason: "something else refuses", state: explain.Broken, code: explain.CodePodsRefused, object: "Deployment shop/lamp",
			change: refused("the moon is full"), summary: []string{"the moon is full"},
		},
		{
			reason: "nothing is seen but that time is up", state: explain.Broken, code: explain.CodeDeploymentNotAvailable, object: "Deployment shop/lamp",
			change: all(installing, hides("pods", "shop"), func(o *clusterState) {
				o.Pods = nil
				o.Deployments[0].Status.Conditions = append(o.Deployments[0].Status.Conditions, appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"})
			}),
			summary: []string{"Deployment shop/lamp is not available"},
		},
		{
			reason: "whatever keeps it may be in what cannot be seen", state: explain.Unknown, code: explain.CodeInProgress,
			change: all(installing, hides("pods", "shop"), func(o *clusterState) { o.Pods = nil }), summary: []string{"obstacles could not be checked"},
		},
		{
			reason: "a Deployment that was scaled to nothing", state: explain.Broken, code: explain.CodeScaledDown, object: "Deployment shop/lamp",
			change: func(o *clusterState) {
				o.Deployments[0].Spec.Replicas, o.Deployments[0].Status.ReadyReplicas = new(int32(0)), 0
			},
			summary: []string{"Deployment shop/lamp is scaled to 0 replicas"},
		},
		{
			reason: "a Deployment that its version wants without replicas", state: explain.Healthy,
			change: func(o *clusterState) {
				o.csv().Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas = new(int32(0))
				o.Deployments[0].Spec.Replicas, o.Deployments[0].Status.ReadyReplicas = new(int32(0)), 0
			},
		},
		{
			reason: "a Deployment that lost its only replica", state: explain.Held, code: explain.CodeDeploymentNotAvailable, object: "Deployment shop/lamp",
			change: func(o *clusterState) {
				o.Deployments[0].Status = appsv1.DeploymentStatus{}
			},
			summary: []string{"Deployment shop/lamp has 0 of 1 replicas ready"},
		},
		{
			reason: "a Deployment that lacks a replica and is available", state: explain.Healthy, code: explain.CodeDeploymentNotAvailable, object: "Deployment shop/lamp",
			change:  func(o *clusterState) { o.Deployments[0].Spec.Replicas = new(int32(2)) },
			summary: []string{"lamp.v1 is installed", "has 1 of 2 replicas ready"},
		},
		{
			reason: "a pod that is going says nothing", state: explain.Progressing, code: explain.CodeInProgress,
			change: all(waits("ErrImagePull", "not found"), func(o *clusterState) { o.pod().DeletionTimestamp = new(ago(0)) }), summary: []string{"Installing"},
		},
	})
}
