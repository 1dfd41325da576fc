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

// Observation is all that the objects of a catalog depend on.
type Observation struct {
	// Source is the CatalogSource, whose catalog is hosted.
	Source *operatorsv1alpha1.CatalogSource
	// NamespaceLabels are those of its namespace.
	NamespaceLabels map[string]string
	// Nodes are those of the cluster.
	Nodes []*corev1.Node
	// Version is the API server's.
	Version Version
	// Deployment is the one of the catalog, nil when there is none.
	Deployment *appsv1.Deployment
	// Autoscaler is the HorizontalPodAutoscaler that scales the Deployment, empty when
	// there is none.
	Autoscaler string
	// AutoscalersHidden tells that the supervisor may not look for one.
	AutoscalersHidden bool
	// Pin is what is run of spec.image.
	Pin Pin
	// Selection is what our registry serves of the catalog; empty for all of it.
	Selection string
	// ConfigMapVersion is the resourceVersion of the ConfigMap that is served.
	ConfigMapVersion string
	// ConfigMapSnapshot names the ConfigMap with the content of that version.
	ConfigMapSnapshot string
}

// Version is a version of Kubernetes or of what it runs containers with.
type Version struct{ Major, Minor, Patch int }

// ParseVersion reads the version at the beginning of a text, such as v1.36.3; the
// zero Version when there is none.
func ParseVersion(text string) Version {
	v, err := kubeversion.Parse(text)
	if err != nil {
		return Version{}
	}
	return Version{Major: versionPart(v.Major), Minor: versionPart(v.Minor), Patch: versionPart(v.Patch)}
}

// versionPart returns a part of a version.
func versionPart(n uint64) int { return int(min(n, math.MaxInt32)) }

func (v Version) atLeast(major, minor int) bool {
	return cmp.Or(cmp.Compare(v.Major, major), cmp.Compare(v.Minor, minor)) >= 0
}

// mountsImages says whether every node can mount an image as a volume without
// further settings.
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

// linux is the operating system of nodes that catalogs run on.
const linux = "linux"

// usableNodes counts the nodes on which replicas may run: those that are there,
// and those of them that could take one now.
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

// takes says whether a node is one for such a pod, whatever state it is in.
func takes(node *corev1.Node, pod *corev1.PodSpec) bool {
	affinity := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *pod})
	fits, err := affinity.Match(node)
	return err == nil && fits && !repels(node, pod.Tolerations)
}

// repels says whether a node is meant for other pods. Taints that Kubernetes
// itself sets tell of passing states.
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

// replicas is how many replicas the catalog has: as many as an autoscaler gave it, or
// as somebody says. Where nobody says it is two, as soon as two nodes can take one;
// and it stays two for as long as two nodes are there at all: to take a replica away
// because a node is lost could take the one that still serves.
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

// askedReplicas is what the annotation of a CatalogSource says; 0 when it has
// none.
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

// Error names the annotation and the remedy.
func (e *annotationError) Error() string {
	return "annotation " + api.AnnotationReplicas + " is " + strconv.Quote(e.value) + ", and the default is used instead; set it to a whole number from 1 to " + strconv.Itoa(maxReplicas)
}

// isConfigMap says whether the catalog of a CatalogSource is in a ConfigMap.
func isConfigMap(source *operatorsv1alpha1.CatalogSource) bool {
	return catalogs.Hosted(source) && source.Spec.SourceType != operatorsv1alpha1.SourceTypeGrpc
}

// runsRegistry says whether the replicas run our registry.
func runsRegistry(source *operatorsv1alpha1.CatalogSource, h *Hosting) bool {
	return isConfigMap(source) || extracted(source) != nil || h.Server == ServerRegistry
}

func extracted(source *operatorsv1alpha1.CatalogSource) *operatorsv1alpha1.ExtractContentConfig {
	if isConfigMap(source) || source.Spec.GrpcPodConfig == nil {
		return nil
	}
	return source.Spec.GrpcPodConfig.ExtractContent
}
