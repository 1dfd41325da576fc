package deployment

import (
	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

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

// IsConfigMap reports whether the catalog of a CatalogSource is in a ConfigMap.
func IsConfigMap(source *operatorsv1alpha1.CatalogSource) bool {
	return catalogs.Hosted(source) && source.Spec.SourceType != operatorsv1alpha1.SourceTypeGrpc
}

// RunsRegistry reports whether the replicas run Chandlery's registry.
func RunsRegistry(source *operatorsv1alpha1.CatalogSource, s *Settings) bool {
	return IsConfigMap(source) || ExtractContent(source) != nil || s.Server == ServerRegistry
}

// ExtractContent returns spec.grpcPodConfig.extractContent of a catalog image; nil if it is not set.
func ExtractContent(source *operatorsv1alpha1.CatalogSource) *operatorsv1alpha1.ExtractContentConfig {
	if IsConfigMap(source) || source.Spec.GrpcPodConfig == nil {
		return nil
	}
	return source.Spec.GrpcPodConfig.ExtractContent
}

// ReadsLabel reports whether the labels of the image determine how it runs.
func ReadsLabel(source *operatorsv1alpha1.CatalogSource, s *Settings) bool {
	return RunsRegistry(source, s) && !IsConfigMap(source) && ExtractContent(source) == nil
}
