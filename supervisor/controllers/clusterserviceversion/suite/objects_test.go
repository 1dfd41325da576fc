package suite_test

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const account = "kettle"

// group returns an OperatorGroup that targets the given namespaces; all namespaces when there are
// none.
func (w *world) group(name string, namespaces ...string) *operatorsv1.OperatorGroup {
	return fixtures.OperatorGroup(w.Namespace, name, namespaces...)
}

// kettle returns an operator with one Deployment that works for any group.
func (w *world) kettle(name string, change ...func(*operatorsv1alpha1.ClusterServiceVersion)) *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle(w.Namespace, name)
	fixtures.PodSpec(csv).Containers[0].Env = []corev1.EnvVar{{Name: "HEAT", Value: "high"}}
	for _, c := range change {
		c(csv)
	}
	return csv
}

func replaces(name string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Replaces = name }
}

func image(name string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		fixtures.PodSpec(csv).Containers[0].Image = name
	}
}

func recreate(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
}

func owns(crd string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned,
			operatorsv1alpha1.CRDDescription{Name: crd, Version: "v1", Kind: "Cup"})
	}
}

func rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}
}

func asks(csv *operatorsv1alpha1.ClusterServiceVersion) {
	strategy := &csv.Spec.InstallStrategy.StrategySpec
	strategy.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = account
	strategy.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: rules()}}
}

// permissions returns what an InstallPlan creates for a kettle.v1 with permissions: a service
// account, a role and a binding.
func (w *world) permissions(name string) (*corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: w.owner("kettle.v1")}
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: account}},
		&rbacv1.Role{ObjectMeta: meta(name), Rules: rules()},
		&rbacv1.RoleBinding{
			ObjectMeta: meta(name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: w.Namespace}},
		}
}

func (w *world) owner(csv string) map[string]string {
	return map[string]string{
		"olm.managed": "true", "olm.owner": csv, "olm.owner.namespace": w.Namespace, "olm.owner.kind": "ClusterServiceVersion",
	}
}
