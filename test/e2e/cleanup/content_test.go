package cleanup_test

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// resources is the number of custom resources of each operator.
const resources = 5

func csvName(namespace string) string { return "kettle." + namespace + ".v1" }

func groupName(namespace string) string { return "group-" + namespace }

func apiGroup(namespace string) string { return namespace + ".cleanup.example" }

// shape determines the namespaces that an operator watches.
type shape string

const (
	// forAll watches all namespaces and converts its custom resources.
	forAll shape = "all"
	// forSome watches its own namespace and another one.
	forSome shape = "some"
	// forOwn watches its own namespace.
	forOwn shape = "own"
)

// targets returns the namespaces that the operator's group names; none for all.
func (s shape) targets(namespace string) []string {
	switch s {
	case forAll:
		return nil
	case forSome:
		return []string{namespace, s.elsewhere(namespace)}
	case forOwn:
	}
	return []string{namespace}
}

// watchedSuffix ends the name of the other namespace that an operator for some namespaces watches.
const watchedSuffix = "-target"

// elsewhere returns another namespace that the operator watches, if any.
func (s shape) elsewhere(namespace string) string {
	switch s {
	case forAll:
		return "default"
	case forSome:
		return namespace + watchedSuffix
	case forOwn:
	}
	return namespace
}

// modes returns the install modes of the operator.
func (s shape) modes() []operatorsv1alpha1.InstallMode {
	own := operatorsv1alpha1.InstallMode{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true}
	switch s {
	case forAll:
		return []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	case forSome:
		return []operatorsv1alpha1.InstallMode{own, {Type: operatorsv1alpha1.InstallModeTypeMultiNamespace, Supported: true}}
	case forOwn:
	}
	return []operatorsv1alpha1.InstallMode{own}
}

// ground returns the objects that exist before an operator and stay after it.
func ground(namespace string, s shape) []client.Object {
	group := apiGroup(namespace)
	list := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	if s == forSome {
		list = append(list, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.elsewhere(namespace)}})
	}
	return append(list,
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: groupName(namespace)}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: s.targets(namespace)},
		},
		&apiextensionsv1.CustomResourceDefinition{
			// These annotations are those that the version's InstallPlan leaves.
			ObjectMeta: metav1.ObjectMeta{Name: "cups." + group, Annotations: map[string]string{
				api.PrefixInstalledAlongside + "cleanup": namespace + "/" + csvName(namespace),
			}},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "cups", Singular: "cup", Kind: "Cup", ListKind: "CupList"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: new(true),
					}},
				}},
			},
		},
	)
}

// operator returns a version that requests the deletion of its custom resources. Its Deployment
// needs no node to be available.
func operator(namespace string, s shape) *operatorsv1alpha1.ClusterServiceVersion {
	crd := "cups." + apiGroup(namespace)
	csv := &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: csvName(namespace)},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName: "Kettle", Version: version.OperatorVersion{Version: semver.MustParse("1.0.0")},
			InstallModes:              s.modes(),
			Cleanup:                   operatorsv1alpha1.CleanupSpec{Enabled: true},
			CustomResourceDefinitions: operatorsv1alpha1.CustomResourceDefinitions{Owned: []operatorsv1alpha1.CRDDescription{{Name: crd, Version: "v1", Kind: "Cup"}}},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment, StrategySpec: strategy(),
			},
			WebhookDefinitions: []operatorsv1alpha1.WebhookDescription{
				webhook(operatorsv1alpha1.ValidatingAdmissionWebhook), webhook(operatorsv1alpha1.MutatingAdmissionWebhook),
			},
		},
	}
	if s == forAll {
		converts := webhook(operatorsv1alpha1.ConversionWebhook)
		converts.Rules, converts.ConversionCRDs = nil, []string{crd}
		csv.Spec.WebhookDefinitions = append(csv.Spec.WebhookDefinitions, converts)
	}
	return csv
}

func strategy() operatorsv1alpha1.StrategyDetailsDeployment {
	labels := map[string]string{"app": "kettle"}
	return operatorsv1alpha1.StrategyDetailsDeployment{
		DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{
			Name: "kettle",
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						ServiceAccountName: "kettle", Containers: []corev1.Container{{Name: "main", Image: "registry.example/kettle:1"}},
					},
				},
			},
		}},
		Permissions: []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "kettle", Rules: rules()}},
	}
}

// webhook returns a webhook that is never called and whose server does not exist.
func webhook(kind operatorsv1alpha1.WebhookAdmissionType) operatorsv1alpha1.WebhookDescription {
	return operatorsv1alpha1.WebhookDescription{
		GenerateName: strings.ToLower(string(kind)) + ".cleanup.example", Type: kind, DeploymentName: "kettle", ContainerPort: 443,
		AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"nobody.cleanup.example"}, APIVersions: []string{"v1"}, Resources: []string{"things"}},
		}},
	}
}

func rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}
}

// belongings returns the objects that an InstallPlan creates for a version, and those that users
// create. Together with those of the supervisor, they include every kind that is cleaned up.
func belongings(csv *operatorsv1alpha1.ClusterServiceVersion, s shape) []client.Object {
	home, elsewhere := csv.Namespace, s.elsewhere(csv.Namespace)
	labels := map[string]string{
		"olm.managed": "true", "olm.owner": csv.Name, "olm.owner.namespace": home, "olm.owner.kind": "ClusterServiceVersion",
	}
	name := "kettle-" + home
	owners := []metav1.OwnerReference{{APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion, Kind: "ClusterServiceVersion", Name: csv.Name, UID: csv.UID}}
	at := func(namespace string) metav1.ObjectMeta {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
		if namespace == home {
			meta.OwnerReferences = owners
		}
		return meta
	}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	account := &corev1.ServiceAccount{ObjectMeta: at(home)}
	account.Name = "kettle"
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: "kettle"}}
	list := []client.Object{
		account,
		&rbacv1.Role{ObjectMeta: at(home), Rules: rules()},
		&rbacv1.RoleBinding{ObjectMeta: at(home), RoleRef: ref("Role"), Subjects: subjects},
		&rbacv1.Role{ObjectMeta: at("kube-system"), Rules: rules()},
		&rbacv1.RoleBinding{ObjectMeta: at("kube-system"), RoleRef: ref("Role"), Subjects: subjects},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cluster-" + name, Labels: labels}, Rules: rules()},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "cluster-" + name, Labels: labels}, RoleRef: ref("ClusterRole"), Subjects: subjects},
	}
	if s == forAll {
		list = append(list, brokenService(home, labels))
	}
	for i := range resources {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: apiGroup(home), Version: "v1", Kind: "Cup"})
		o.SetNamespace([]string{home, elsewhere}[i%2])
		o.SetName(fmt.Sprintf("%s-%d", name, i))
		list = append(list, o)
	}
	return list
}

// brokenService returns an APIService without a working server, as exists when pods are deleted
// before their registration.
func brokenService(home string, labels map[string]string) client.Object {
	group := "aggregated." + apiGroup(home)
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(2000), "versionPriority": int64(15),
		"service": map[string]any{"namespace": home, "name": "nobody"}, "insecureSkipTLSVerify": true,
	}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	o.SetName("v1." + group)
	o.SetLabels(labels)
	return o
}
