package suite_test

import (
	"strings"

	"github.com/blang/semver/v4"
	"github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// group returns a group that targets the given namespaces; all namespaces if there are none.
func group(namespace string, targets ...string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: targets},
	}
}

// operator returns a ClusterServiceVersion that provides kinds in the test's API group.
func (w *world) operator(namespace string, kinds ...string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator.v1"},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName: "Operator",
			Version:     version.OperatorVersion{Version: semver.MustParse("1.0.0")},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{}},
			},
		},
	}
	for _, mode := range []operatorsv1alpha1.InstallModeType{
		operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeSingleNamespace,
		operatorsv1alpha1.InstallModeTypeMultiNamespace, operatorsv1alpha1.InstallModeTypeAllNamespaces,
	} {
		csv.Spec.InstallModes = append(csv.Spec.InstallModes, operatorsv1alpha1.InstallMode{Type: mode, Supported: true})
	}
	for _, kind := range kinds {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned,
			operatorsv1alpha1.CRDDescription{Name: w.crdName(kind), Version: "v1", Kind: kind})
	}
	return csv
}

// crdName returns the name of the CustomResourceDefinition of a kind.
func (w *world) crdName(kind string) string { return strings.ToLower(kind) + "s." + w.apiGroup() }
func (w *world) api(kind string) string     { return kind + ".v1." + w.apiGroup() }

// apiGroup returns an API group that is unique to the test.
func (w *world) apiGroup() string { return w.namespace + ".example.com" }

// lamps creates the CustomResourceDefinition of the kind Lamp and deletes it after the test.
func (w *world) lamps() *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: w.crdName("Lamp")},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: w.apiGroup(), Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "lamps", Singular: "lamp", Kind: "Lamp", ListKind: "LampList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
	w.create(crd)
	w.t.Cleanup(func() {
		ctx, cancel := cleanup(w.t)
		defer cancel()
		if err := client.IgnoreNotFound(w.Delete(ctx, crd)); err != nil {
			w.t.Errorf("deleting CRD %s: %v", crd.Name, err)
		}
	})
	return crd
}

// succeed sets the phase of a ClusterServiceVersion to Succeeded.
func (w *world) succeed(csv *operatorsv1alpha1.ClusterServiceVersion) {
	w.t.Helper()
	csv.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded
	if err := w.Status().Update(w.t.Context(), csv); err != nil {
		w.t.Fatalf("writing the phase of %s: %v", csv.Name, err)
	}
}

// claims waits until a group has claimed exactly the given kinds.
func (w *world) claims(group *operatorsv1.OperatorGroup, kinds ...string) {
	w.t.Helper()
	apis := make([]string, len(kinds))
	for i, kind := range kinds {
		apis[i] = w.api(kind)
	}
	w.becomes(func(g gomega.Gomega) {
		g.Expect(w.Get(w.t.Context(), client.ObjectKeyFromObject(group), group)).To(gomega.Succeed())
		g.Expect(group.Annotations["olm.providedAPIs"]).To(gomega.Equal(strings.Join(apis, ",")))
	})
}

// rolesOf returns the cluster roles of the groups in a namespace by level.
func (w *world) rolesOf(g gomega.Gomega, namespace string) map[string]*rbacv1.ClusterRole {
	var list rbacv1.ClusterRoleList
	g.Expect(w.List(w.t.Context(), &list, client.MatchingLabels{
		"olm.owner.kind": "OperatorGroup", "olm.owner.namespace": namespace,
	})).To(gomega.Succeed())
	roles := map[string]*rbacv1.ClusterRole{}
	for i := range list.Items {
		for _, level := range []string{"admin", "edit", "view"} {
			if strings.HasPrefix(list.Items[i].Name, "olm.og.group."+level+"-") {
				roles[level] = &list.Items[i]
			}
		}
	}
	return roles
}

func (w *world) role(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
