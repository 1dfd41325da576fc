package catalogsource

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/kubeversion"
)

// Observation holds the inputs of a catalog's objects.
type Observation struct {
	// Source is the CatalogSource of a hosted catalog.
	Source *operatorsv1alpha1.CatalogSource
	// NamespaceLabels are the labels of its namespace.
	NamespaceLabels map[string]string
	// Nodes are the nodes of the cluster.
	Nodes []*corev1.Node
	// Version is the version of the API server.
	Version Version
	// Deployment is the Deployment of the catalog; nil if there is none.
	Deployment *appsv1.Deployment
	// Autoscaler is the name of the HorizontalPodAutoscaler that scales the Deployment; empty if
	// there is none.
	Autoscaler string
	// AutoscalersHidden is true if the supervisor may not list autoscalers.
	AutoscalersHidden bool
	// Pin is the image reference to run.
	Pin Pin
	// Selection is the part of the catalog to serve; empty for all of it.
	Selection string
	// ConfigMapVersion is the resourceVersion of the ConfigMap to serve.
	ConfigMapVersion string
	// ConfigMapSnapshot is the name of the ConfigMap with the content of that version.
	ConfigMapSnapshot string
}

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
func (o *Observation) mountsImages() bool {
	nodes := 0
	for _, node := range o.Nodes {
		if node.Labels[corev1.LabelOSStable] != linux {
			continue
		}
		nodes++
		if !nodeMountsImages(node.Status.NodeInfo) {
			return false
		}
	}
	return nodes > 0 && o.Version.atLeast(1, 35)
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
func (o *Observation) usableNodes(pod *corev1.PodSpec) (present, ready int) {
	for _, node := range o.Nodes {
		if !takes(node, pod) {
			continue
		}
		present++
		if isReady(node) && !node.Spec.Unschedulable {
			ready++
		}
	}
	return present, ready
}

// takes reports whether a node matches a pod's affinity and tolerations, regardless of the node's
// state.
func takes(node *corev1.Node, pod *corev1.PodSpec) bool {
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

func isReady(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return node.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// replicas returns the number of replicas: the one that an autoscaler, the annotation or the
// settings determine. Otherwise it is two once two nodes are ready, and one before. It stays two
// while two nodes exist, ready or not. Reducing it after the failure of a node could delete the
// replica that still serves.
func (o *Observation) replicas(pod *corev1.PodSpec, h *Hosting) int {
	if scaled := o.scaled(); scaled > 0 {
		return scaled
	}
	if asked, err := askedReplicas(o.Source); err == nil && asked > 0 {
		return asked
	}
	if h.Replicas > 0 {
		return h.Replicas
	}
	present, ready := o.usableNodes(pod)
	had := o.Deployment != nil && o.Deployment.Spec.Replicas != nil && *o.Deployment.Spec.Replicas > 1
	if ready >= 2 || (had && present >= 2) {
		return 2
	}
	return 1
}

// askedReplicas returns the number of replicas in the annotation of a CatalogSource; 0 without
// annotation.
func askedReplicas(source *operatorsv1alpha1.CatalogSource) (int, error) {
	text, given := source.Annotations[api.AnnotationReplicas]
	if !given {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxReplicas {
		return 0, &annotationError{value: text}
	}
	return n, nil
}

type annotationError struct{ value string }

// Error returns the annotation, its value and the remedy.
func (e *annotationError) Error() string {
	return "annotation " + api.AnnotationReplicas + " is " + strconv.Quote(e.value) + ", and the default is used instead; set it to a whole number from 1 to " + strconv.Itoa(maxReplicas)
}

// isConfigMap reports whether the catalog of a CatalogSource is in a ConfigMap.
func isConfigMap(source *operatorsv1alpha1.CatalogSource) bool {
	return catalogs.Hosted(source) && source.Spec.SourceType != operatorsv1alpha1.SourceTypeGrpc
}

// runsRegistry reports whether the replicas run Chandlery's registry.
func runsRegistry(source *operatorsv1alpha1.CatalogSource, h *Hosting) bool {
	return isConfigMap(source) || extracted(source) != nil || h.Server == ServerRegistry
}

func extracted(source *operatorsv1alpha1.CatalogSource) *operatorsv1alpha1.ExtractContentConfig {
	if isConfigMap(source) || source.Spec.GrpcPodConfig == nil {
		return nil
	}
	return source.Spec.GrpcPodConfig.ExtractContent
}
