package deployment

import (
	"cmp"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/chandlery/chandlery/supervisor/kubeversion"
)

// Version is a version of Kubernetes or of a container runtime.
type Version struct{ Major, Minor, Patch int }

// ParseVersion parses the version at the beginning of a text, such as v1.36.3. It returns the zero
// Version for an invalid text.
func ParseVersion(text string) Version {
	v, err := kubeversion.Parse(text)
	if err != nil {
		return Version{}
	}
	return Version{Major: versionPart(v.Major), Minor: versionPart(v.Minor), Patch: versionPart(v.Patch)}
}

// versionPart converts a part of a version to int and limits it to math.MaxInt32.
func versionPart(n uint64) int { return int(min(n, math.MaxInt32)) }

func (v Version) atLeast(major, minor int) bool {
	return cmp.Or(cmp.Compare(v.Major, major), cmp.Compare(v.Minor, minor)) >= 0
}

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
	return nodes > 0 && in.Version.atLeast(1, 35)
}

func nodeMountsImages(info corev1.NodeSystemInfo) bool {
	runtime, text, _ := strings.Cut(info.ContainerRuntimeVersion, "://")
	version := ParseVersion(text)
	capable := runtime == "containerd" && version.atLeast(2, 1) || runtime == "cri-o" && version.atLeast(1, 33)
	return capable && ParseVersion(info.KubeletVersion).atLeast(1, 35)
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
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			continue
		}
		if !tolerates(tolerations, taint) {
			return true
		}
	}
	return false
}

func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		t := &tolerations[i]
		if (t.Effect != "" && t.Effect != taint.Effect) || (t.Key != "" && t.Key != taint.Key) {
			continue
		}
		if t.Operator == corev1.TolerationOpExists || (t.Key != "" && t.Value == taint.Value) {
			return true
		}
	}
	return false
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
