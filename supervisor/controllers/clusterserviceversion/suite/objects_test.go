package suite_test

import (
	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const account = "kettle"

// group returns an OperatorGroup that targets the given namespaces; all namespaces when there are
// none.
func (w *world) group(name string, namespaces ...string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: namespaces},
	}
}

// kettle returns an operator with one Deployment that works for any group.
func (w *world) kettle(name string, change ...func(*operatorsv1alpha1.ClusterServiceVersion)) *operatorsv1alpha1.ClusterServiceVersion {
	labels := map[string]string{"app": "kettle"}
	csv := &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName: "Kettle",
			Version:     version.OperatorVersion{Version: semver.MustParse("1.0.0")},
			InstallModes: []operatorsv1alpha1.InstallMode{
				{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true},
				{Type: operatorsv1alpha1.InstallModeTypeSingleNamespace, Supported: true},
				{Type: operatorsv1alpha1.InstallModeTypeMultiNamespace, Supported: true},
				{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true},
			},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
					DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{
						Name: "kettle",
						Spec: appsv1.DeploymentSpec{
							Selector: &metav1.LabelSelector{MatchLabels: labels},
							Template: corev1.PodTemplateSpec{
								ObjectMeta: metav1.ObjectMeta{Labels: labels},
								Spec: corev1.PodSpec{Containers: []corev1.Container{{
									Name: "manager", Image: "example.com/kettle:1",
									Env: []corev1.EnvVar{{Name: "HEAT", Value: "high"}},
								}}},
							},
						},
					}},
				},
			},
		},
	}
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
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = name
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
		return metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: w.owner("kettle.v1")}
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: account}},
		&rbacv1.Role{ObjectMeta: meta(name), Rules: rules()},
		&rbacv1.RoleBinding{
			ObjectMeta: meta(name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: w.namespace}},
		}
}

func (w *world) owner(csv string) map[string]string {
	return map[string]string{
		"olm.managed": "true", "olm.owner": csv, "olm.owner.namespace": w.namespace, "olm.owner.kind": "ClusterServiceVersion",
	}
}

func cups(group string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "cups." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "cups", Singular: "cup", Kind: "Cup", ListKind: "CupList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}
