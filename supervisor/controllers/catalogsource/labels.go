package catalogsource

import (
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Labels and annotations that today's tools know.
const (
	labelManagedBy        = "app.kubernetes.io/managed-by"
	managedBy             = "chandlery-supervisor"
	annotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	labelEnforcedSecurity = "pod-security.kubernetes.io/enforce"
	// labelCatalogDir on an image says where its file-based catalog is.
	labelCatalogDir = "operators.operatorframework.io.index.configs.v1"
)

// serviceLabels are what the Service selects: also the pods that another
// controller ran, so that those go on serving until ours do.
func serviceLabels(name string) map[string]string {
	return map[string]string{api.LabelCatalogSource: name, api.LabelManaged: catalogs.LabelManagedValue}
}

// replicaLabels are what tells our replicas from anybody else's.
func replicaLabels(name string) map[string]string {
	labels := serviceLabels(name)
	labels[labelManagedBy] = managedBy
	return labels
}
