package deployment

import (
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
)

// Input holds the inputs of a catalog's objects.
type Input struct {
	Content

	// Source is the CatalogSource of a hosted catalog.
	Source *operatorsv1alpha1.CatalogSource
	// NamespaceLabels are the labels of its namespace.
	NamespaceLabels map[string]string
	// Nodes are the nodes of the cluster.
	Nodes []*corev1.Node
	// Version is the version of the API server.
	Version semver.Version
	// Deployment is the Deployment of the catalog; nil if there is none.
	Deployment *appsv1.Deployment
	// Autoscaler is the name of the HorizontalPodAutoscaler that scales the Deployment; empty if
	// there is none.
	Autoscaler string
}

// Content is the content that a catalog serves.
type Content struct {
	// Image is the image to run.
	Image digest.Image
	// Selection is the part of the catalog to serve; empty for all of it.
	Selection string
	// ConfigMapVersion is the resourceVersion of the ConfigMap to serve.
	ConfigMapVersion string
	// ConfigMapSnapshot is the name of the ConfigMap with the content of that version.
	ConfigMapSnapshot string
}

// RunsRegistry reports whether the replicas run Chandlery's registry.
func RunsRegistry(source *operatorsv1alpha1.CatalogSource, s *Settings) bool {
	return catalogs.IsConfigMap(source) || ExtractContent(source) != nil || s.Server == ServerRegistry
}

// ExtractContent returns spec.grpcPodConfig.extractContent of a catalog image; nil if it is not set.
func ExtractContent(source *operatorsv1alpha1.CatalogSource) *operatorsv1alpha1.ExtractContentConfig {
	if catalogs.IsConfigMap(source) || source.Spec.GrpcPodConfig == nil {
		return nil
	}
	return source.Spec.GrpcPodConfig.ExtractContent
}

// ReadsLabel reports whether the labels of the image determine how it runs.
func ReadsLabel(source *operatorsv1alpha1.CatalogSource, s *Settings) bool {
	return RunsRegistry(source, s) && !catalogs.IsConfigMap(source) && ExtractContent(source) == nil
}

// Labels and annotations that other tools define.
const (
	labelManagedBy        = "app.kubernetes.io/managed-by"
	managedBy             = "chandlery-supervisor"
	annotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	labelEnforcedSecurity = "pod-security.kubernetes.io/enforce"
)

// portName is the name of a catalog's port.
const portName = "grpc"

// ServiceLabels returns the labels that the Service selects. They also match the pods of another
// controller, so that these serve until the new replicas do.
func ServiceLabels(name string) map[string]string {
	return map[string]string{api.LabelCatalogSource: name, api.LabelManaged: catalogs.LabelManagedValue}
}

// ReplicaLabels returns the labels that distinguish the supervisor's replicas from all other pods.
func ReplicaLabels(name string) map[string]string {
	labels := ServiceLabels(name)
	labels[labelManagedBy] = managedBy
	return labels
}

// IsReplica reports whether a pod is one of the supervisor's replicas.
func IsReplica(pod *corev1.Pod) bool { return pod.Labels[labelManagedBy] == managedBy }

// ImageOf returns the image that a Deployment runs; nil if it does not run a catalog image.
func ImageOf(d *appsv1.Deployment) *digest.Image {
	if d == nil || d.Annotations[api.AnnotationImage] == "" {
		return nil
	}
	return &digest.Image{
		Spec:       d.Annotations[api.AnnotationImage],
		Digest:     d.Annotations[api.AnnotationImageDigest],
		CatalogDir: d.Annotations[api.AnnotationCatalogDir],
	}
}

// ConfigMapOf returns the name of the ConfigMap that a Deployment mounts; empty if there is none.
func ConfigMapOf(d *appsv1.Deployment) string {
	for i := range d.Spec.Template.Spec.Volumes {
		if v := &d.Spec.Template.Spec.Volumes[i]; v.Name == volumeContent && v.ConfigMap != nil {
			return v.ConfigMap.Name
		}
	}
	return ""
}

// HasSelection reports whether the replicas of a Deployment serve a selection.
func HasSelection(d *appsv1.Deployment) bool {
	if d == nil || len(d.Spec.Template.Spec.Containers) == 0 {
		return false
	}
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Args, func(argument string) bool {
		return strings.HasPrefix(argument, flagSelection)
	})
}
