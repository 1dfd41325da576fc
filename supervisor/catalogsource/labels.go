package catalogsource

import "github.com/chandlery/chandlery/supervisor/catalogs"

// AnnotationReplicas on a CatalogSource says how many replicas its catalog has.
const AnnotationReplicas = "chandlery.dev/replicas"

// Annotations of the Deployment of a catalog, by which the next look at it, by
// whichever supervisor, knows what runs.
const (
	// annotationImage is spec.image as it was when its digest was found.
	annotationImage = "chandlery.dev/image"
	// annotationDigest is the digest that the replicas are pinned to; absent
	// when they run the image by its tag.
	annotationDigest = "chandlery.dev/image-digest"
	// annotationCatalogDir is where the label of the image says that its catalog
	// is.
	annotationCatalogDir = "chandlery.dev/catalog-dir"
	// annotationSecrets on a pod names the pull secrets that it got from its
	// ServiceAccount: a pod keeps those that it began with.
	annotationSecrets = "chandlery.dev/pull-secrets" //nolint:gosec // names of Secrets, not what they hold
	// annotationHash is the hash of what was applied. It tells of fields that
	// are no longer wanted, which a comparison does not show.
	annotationHash = "chandlery.dev/applied-hash"
)

// Labels and annotations that today's tools know.
const (
	labelPodSpecHash      = "olm.pod-spec-hash"
	labelServiceSpecHash  = "olm.service-spec-hash"
	labelConfigMapVersion = "olm.configMapResourceVersion"
	// labelUpdate marks pods that others start to find out whether an image has
	// changed.
	labelUpdate             = "catalogsource.operators.coreos.com/update"
	labelManagedBy          = "app.kubernetes.io/managed-by"
	managedBy               = "chandlery-supervisor"
	annotationPriorityClass = "operatorframework.io/priorityclass"
	annotationSafeToEvict   = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationLastApplied   = "kubectl.kubernetes.io/last-applied-configuration"
	labelEnforcedSecurity   = "pod-security.kubernetes.io/enforce"
	// labelCatalogDir on an image says where its file-based catalog is.
	labelCatalogDir = "operators.operatorframework.io.index.configs.v1"
	// ownPrefix begins annotations that say how replicas are run; the replicas
	// have no use for them, and a change of one must not start others.
	ownPrefix = "chandlery.dev/"
)

// serviceLabels are what the Service selects: also the pods that another
// controller ran, so that those go on serving until ours do.
func serviceLabels(name string) map[string]string {
	return map[string]string{catalogs.LabelCatalogSource: name, catalogs.LabelManaged: catalogs.LabelManagedValue}
}

// replicaLabels are what tells our replicas from anybody else's.
func replicaLabels(name string) map[string]string {
	labels := serviceLabels(name)
	labels[labelManagedBy] = managedBy
	return labels
}
