package deployment

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/chandlery/chandlery/supervisor/apiserver/kubeversion"
)

// mountsImages reports whether every node can mount an image as a volume by default.
func (in *Input) mountsImages() bool {
	nodes := 0
	for _, node := range in.Nodes {
		if node.Labels[corev1.LabelOSStable] != linux {
			continue
		}
		nodes++
		if !nodeMountsImages(node.Status.NodeInfo) {
			return false
		}
	}
	return nodes > 0 && kubeversion.AtLeast(in.Version, 1, 35)
}

func nodeMountsImages(info corev1.NodeSystemInfo) bool {
	runtime, text, _ := strings.Cut(info.ContainerRuntimeVersion, "://")
	version, errRuntime := kubeversion.Parse(text)
	kubelet, errKubelet := kubeversion.Parse(info.KubeletVersion)
	capable := runtime == "containerd" && kubeversion.AtLeast(version, 2, 1) || runtime == "cri-o" && kubeversion.AtLeast(version, 1, 33)
	return errRuntime == nil && errKubelet == nil && capable && kubeversion.AtLeast(kubelet, 1, 35)
}

// linux is the operating system of the nodes that run catalogs.
const linux = "linux"

// usableNodes counts the nodes that match a pod. ready counts those of them that can run it now.
func (in *Input) usableNodes(pod *corev1.PodSpec) (present, ready int) {
	for _, node := range in.Nodes {
		if !Matches(node, pod) {
			continue
		}
		present++
		if IsReady(node) && !node.Spec.Unschedulable {
			ready++
		}
	}
	return present, ready
}

// Matches reports whether a node matches a pod's affinity and tolerations, regardless of the node's
// state.
func Matches(node *corev1.Node, pod *corev1.PodSpec) bool {
	affinity := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *pod})
	fits, err := affinity.Match(node)
	return err == nil && fits && !repels(node, pod.Tolerations)
}

// repels reports whether a pod does not tolerate a taint of a node. Taints that Kubernetes sets are
// ignored, because they describe temporary states.
func repels(node *corev1.Node, tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, "node.kubernetes.io/") && !tolerates(tolerations, &taint)
	})
}

func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return scheduling.TolerationsTolerateTaint(klog.Background(), tolerations, taint, false)
}

// IsReady reports whether a node is ready.
func IsReady(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return node.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}
