package operatorcondition

import (
	"cmp"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/opcondition"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// kindCondition is the kind of the owner of the role and its binding.
const kindCondition = "OperatorCondition"

// defaultAccount is the service account of pods that name none.
const defaultAccount = "default"

// desiredCondition returns the wanted OperatorCondition of a version, without the fields that the
// operator or an administrator writes. have is the current one; nil if there is none.
func desiredCondition(csv *operatorsv1alpha1.ClusterServiceVersion, have *operatorsv2.OperatorCondition) *operatorsv2.OperatorCondition {
	c := &operatorsv2.OperatorCondition{
		TypeMeta: metav1.TypeMeta{APIVersion: operatorsv2.GroupVersion.String(), Kind: kindCondition},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: csv.Namespace, Name: csv.Name,
			Labels: map[string]string{api.LabelManaged: "true"},
			OwnerReferences: []metav1.OwnerReference{reference(
				operatorsv1alpha1.SchemeGroupVersion.String(), operatorsv1alpha1.ClusterServiceVersionKind, &csv.ObjectMeta)},
		},
	}
	// Without these labels, the controller of Operators would add them with another write.
	maps.Copy(c.Labels, plansteps.ComponentLabels(csv.Labels))
	deployments := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range deployments {
		pod := deployments[i].Spec.Template.Spec
		c.Spec.Deployments = append(c.Spec.Deployments, deployments[i].Name)
		c.Spec.ServiceAccounts = append(c.Spec.ServiceAccounts,
			cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount, defaultAccount))
	}
	slices.Sort(c.Spec.ServiceAccounts)
	c.Spec.ServiceAccounts = slices.Compact(c.Spec.ServiceAccounts)
	if have == nil {
		return c
	}
	c.Spec.Deployments = inOrder(have.Spec.Deployments, c.Spec.Deployments)
	c.Spec.ServiceAccounts = inOrder(have.Spec.ServiceAccounts, c.Spec.ServiceAccounts)
	if shown := opcondition.Shown(have); shown != "" {
		c.Annotations = map[string]string{api.AnnotationShownConditions: shown}
	}
	return c
}

// inOrder returns have if it has the same elements as want, otherwise want. A different order would
// increase the generation and make the operator's reports outdated.
func inOrder(have, want []string) []string {
	if sets.New(have...).Equal(sets.New(want...)) {
		return have
	}
	return want
}

// desiredRole allows an operator to write its own OperatorCondition only. The role lacks the owner
// labels of a ClusterServiceVersion. Roles with these labels are copied to cluster scope for an
// operator of all namespaces.
func desiredRole(c *operatorsv2.OperatorCondition) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: ownedBy(c),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{operatorsv2.GroupVersion.Group},
			// Operators that use API version v1 write to the status.
			Resources:     []string{"operatorconditions", "operatorconditions/status"},
			ResourceNames: []string{c.Name},
			Verbs:         []string{"get", "update", "patch"},
		}},
	}
}

// desiredBinding grants the role to the service accounts of a version's Deployments.
func desiredBinding(c *operatorsv2.OperatorCondition, accounts []string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: ownedBy(c),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: c.Name},
	}
	for _, account := range accounts {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: c.Namespace, Name: account})
	}
	return b
}

func ownedBy(c *operatorsv2.OperatorCondition) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: c.Namespace, Name: c.Name,
		Labels:          map[string]string{api.LabelManaged: "true"},
		OwnerReferences: []metav1.OwnerReference{reference(operatorsv2.GroupVersion.String(), kindCondition, &c.ObjectMeta)},
	}
}

// reference returns an owner reference that does not block the owner's deletion.
func reference(apiVersion, kind string, owner *metav1.ObjectMeta) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: owner.Name, UID: owner.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}
