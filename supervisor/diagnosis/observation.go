// Package diagnosis finds out, from what was read of a cluster, what is wrong with its
// catalogs and operators, why, and what to do. It is pure: package snapshot reads.
package diagnosis

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Observation is what was read of a cluster, or of some of its namespaces, as plain
// values. What could not be read is in Unseen, so that nothing is taken for absent that
// is only hidden.
type Observation struct {
	// Taken is when.
	Taken time.Time
	// Namespaces are those that were looked at; empty for all.
	Namespaces []string
	// GlobalNamespace holds the catalogs that serve every namespace.
	GlobalNamespace string

	CatalogSources     []operatorsv1alpha1.CatalogSource
	Subscriptions      []operatorsv1alpha1.Subscription
	InstallPlans       []operatorsv1alpha1.InstallPlan
	Versions           []operatorsv1alpha1.ClusterServiceVersion // without copies
	OperatorGroups     []operatorsv1.OperatorGroup
	OperatorConditions []operatorsv2.OperatorCondition

	Deployments     []appsv1.Deployment
	ReplicaSets     []appsv1.ReplicaSet
	Pods            []corev1.Pod
	Events          []corev1.Event
	ServiceAccounts []corev1.ServiceAccount
	ResourceQuotas  []corev1.ResourceQuota
	Nodes           []corev1.Node
	Leases          []coordinationv1.Lease
	Definitions     []apiextensionsv1.CustomResourceDefinition

	// Unseen is what could not be read.
	Unseen []Unseen
}

// Unseen is a kind of object that could not be read.
type Unseen struct {
	// Resource is its plural name, with the group: deployments.apps.
	Resource string `json:"resource"`
	// Namespace is where; empty for all, or for the cluster.
	Namespace string `json:"namespace,omitempty"`
	// Why is Forbidden, NotInstalled or Unreachable, as package discovery says it.
	Why string `json:"why"`
	// Message says it in words.
	Message string `json:"message,omitempty"`
}
