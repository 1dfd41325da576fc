// Package explain finds out, from what was read of a cluster, what is wrong with its
// catalogs and operators, why, and what to do. It is pure: package snapshot reads.
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

	"github.com/chandlery/chandlery/supervisor/rival"
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

	// Deployments, Pods and Events are those of the namespaces that hold any of the
	// objects above, and Deployments of OLM wherever they are. Of Events only warnings
	// are here.
	Deployments []appsv1.Deployment
	Pods        []corev1.Pod
	Events      []corev1.Event
	Nodes       []corev1.Node
	// LimitRanges are those of the namespaces where one refuses pods.
	LimitRanges []corev1.LimitRange
	// Terminating are the namespaces that are being deleted, of those that were asked about
	// and those where something is being deleted or has no OperatorGroup.
	Terminating []corev1.Namespace
	// Leases are those of supervisors.
	Leases []coordinationv1.Lease
	// ManagerAccess is what the service accounts of Deployments that look like OLM's may do.
	ManagerAccess rival.Access
	// Definitions are those that versions name which are not well.
	Definitions []apiextensionsv1.CustomResourceDefinition

	// Unseen is what could not be read.
	Unseen []Unseen
}

// Whys of what could not be read. They are words of package discovery.
const (
	WhyForbidden    = "Forbidden"
	WhyNotInstalled = "NotInstalled"
	WhyUnreachable  = "Unreachable"
)

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
	// Minor says that the answer is what it is without it: what can be seen says enough.
	Minor bool `json:"minor,omitempty"`
}

// Rule is what a role has to allow for it to be seen.
func (u Unseen) Rule() rbacv1.PolicyRule {
	resource, group, _ := strings.Cut(u.Resource, ".")
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list"}}
}

// hidden says whether objects of a resource in a namespace, which is empty for what has
// none, may exist without being here.
func (o *Observation) hidden(resource, namespace string) bool {
	return slices.ContainsFunc(o.Unseen, func(u Unseen) bool { return u.covers(resource, namespace) })
}

// covers says whether objects of a resource in a namespace are among what could not be
// read. What is not installed is not hidden: there is none.
func (u Unseen) covers(resource, namespace string) bool {
	return u.Resource == resource && u.Why != WhyNotInstalled && (u.Namespace == "" || u.Namespace == namespace)
}
