// Package explain finds out what is wrong with the catalogs and operators of a cluster, why, and what to do. It
// is pure: package snapshot reads the cluster.
package explain

import (
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// ClusterState is the state of a cluster, or of some of its namespaces, as plain values. Unreadable lists what could
// not be read, so that a hidden object does not count as absent.
type ClusterState struct {
	// ReadAt is the time at which the objects were read.
	ReadAt time.Time
	// Namespaces are the namespaces that were read; empty for all.
	Namespaces []string
	// GlobalNamespace holds the catalogs that serve every namespace.
	GlobalNamespace string

	CatalogSources     []operatorsv1alpha1.CatalogSource
	Subscriptions      []operatorsv1alpha1.Subscription
	InstallPlans       []operatorsv1alpha1.InstallPlan
	Versions           []operatorsv1alpha1.ClusterServiceVersion // without copies
	OperatorGroups     []operatorsv1.OperatorGroup
	OperatorConditions []operatorsv2.OperatorCondition

	// Deployments, Pods and Events are those of the namespaces that contain any of the objects above. Deployments of
	// OLM are included from all namespaces. Of Events, only warnings are included.
	Deployments []appsv1.Deployment
	Pods        []corev1.Pod
	Events      []corev1.Event
	Nodes       []corev1.Node
	// LimitRanges are those of the namespaces where a LimitRange refuses pods.
	LimitRanges []corev1.LimitRange
	// Terminating are namespaces that are being deleted. They include the requested namespaces, and namespaces with
	// an object in deletion or without an OperatorGroup.
	Terminating []corev1.Namespace
	// Leases are the Leases of supervisors.
	Leases []coordinationv1.Lease
	// PackagesProblem is why the APIService of PackageManifests is unavailable. It is empty if it is available, or could
	// not be read.
	PackagesProblem string
	// ManagerAccess holds the permissions of the service accounts of Deployments that look like OLM's.
	ManagerAccess competing.Access
	// Definitions are the definitions that versions name and that are not healthy.
	Definitions []apiextensionsv1.CustomResourceDefinition

	// Unreadable is what could not be read.
	Unreadable []Unreadable
}

// Reasons why objects could not be read. They are words of package discovery.
const (
	UnreadableForbidden    = "Forbidden"
	UnreadableNotInstalled = "NotInstalled"
	UnreadableUnreachable  = "Unreachable"
)

// Unreadable is a kind of object that could not be read.
type Unreadable struct {
	// Resource is the plural name of the resource, with the group: deployments.apps.
	Resource string `json:"resource"`
	// Namespace is the namespace; empty for all namespaces, or for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Reason is Forbidden, NotInstalled or Unreachable, as in package discovery.
	Reason string `json:"why"`
	// Message describes the reason.
	Message string `json:"message,omitempty"`
	// Minor is true if the answer does not depend on the object.
	Minor bool `json:"minor,omitempty"`
}

// Rule returns the rule that a role needs to read the objects.
func (u Unreadable) Rule() rbacv1.PolicyRule {
	resource, group, _ := strings.Cut(u.Resource, ".")
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list"}}
}

// hidden reports whether objects of a resource in a namespace may exist without being in the state. The
// namespace is empty for cluster-scoped objects.
func (o *ClusterState) hidden(resource, namespace string) bool {
	return slices.ContainsFunc(o.Unreadable, func(u Unreadable) bool { return u.covers(resource, namespace) })
}

// covers reports whether objects of a resource in a namespace are among those that could not be read. A
// resource that is not installed hides nothing.
func (u Unreadable) covers(resource, namespace string) bool {
	return u.Resource == resource && u.Reason != UnreadableNotInstalled && (u.Namespace == "" || u.Namespace == namespace)
}
