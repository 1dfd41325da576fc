package catalogsource

import (
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Labels and annotations that other tools define.
const (
	labelManagedBy        = "app.kubernetes.io/managed-by"
	managedBy             = "chandlery-supervisor"
	annotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	labelEnforcedSecurity = "pod-security.kubernetes.io/enforce"
	// labelCatalogDir is the image label with the directory of its file-based catalog.
	labelCatalogDir = "operators.operatorframework.io.index.configs.v1"
)

// serviceLabels are the labels that the Service selects. They also match the pods of another
// controller, so that these serve until the new replicas do.
func serviceLabels(name string) map[string]string {
	return map[string]string{api.LabelCatalogSource: name, api.LabelManaged: catalogs.LabelManagedValue}
}

// replicaLabels are the labels that distinguish the supervisor's replicas from all other pods.
func replicaLabels(name string) map[string]string {
	labels := serviceLabels(name)
	labels[labelManagedBy] = managedBy
	return labels
}
