package deployment

import (
	corev1 "k8s.io/api/core/v1"

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
