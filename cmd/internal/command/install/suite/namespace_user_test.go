package suite_test

import (
	"context"
	"os/exec"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// testNamespaceUser runs commands as a user with the permissions of view in one namespace. A CustomResourceDefinition
// stands in for the API of PackageManifests, which the supervisor serves in a pod only.
func (c *cluster) testNamespaceUser(t *testing.T) {
	const namespace, user = "cove", "cove-viewer"
	kubeconfig, err := c.cp.NewKubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	objects := append([]client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace}},
		manifestDefinition(),
	}, fixtures.Role(namespace, user, fixtures.User(user), rbacv1.PolicyRule{
		APIGroups: []string{operatorsv1alpha1.GroupName, manifestGroup}, Verbs: []string{"get", "list"},
		Resources: []string{"subscriptions", "operatorgroups", "clusterserviceversions", "installplans", "catalogsources", "packagemanifests"},
	})...)
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	as := func(code int, args ...string) (out, log string) {
		return c.exec(t, code, exec.CommandContext(t.Context(), program("kubectl-chandlery"), append(args, "-n", namespace, "--kubeconfig", kubeconfig)...))
	}
	testenv.Until(t, testenv.Patience, "the API of PackageManifests", func(ctx context.Context) string {
		if err := c.Create(ctx, lanternManifest(namespace)); err != nil {
			return err.Error()
		}
		return ""
	})
	out, log := as(0, "search", "LANTERN")
	contains(t, out, "lantern olm/sample stable 1.2.0 Lantern")
	contains(t, log, "Searched PackageManifests", "permission to list catalogsources.operators.coreos.com in namespace olm is missing")
	out, _ = as(0, "install", "lantern", "--version", "1.1.0", "--dry-run")
	contains(t, out, "Subscription cove/lantern: package lantern, channel stable, catalog olm/sample", "1 to install", "lantern.v1.1.0", "the plan is from PackageManifests, without dependencies and updates",
		"permission to list operatorgroups.operators.coreos.com in all namespaces is missing")
	_, log = c.exec(t, 3, exec.CommandContext(t.Context(), program("kubectl-chandlery"), "install", "lantern", "--dry-run", "-n", "olm", "--kubeconfig", kubeconfig))
	contains(t, log, "listing the OperatorGroups of namespace olm")
	_, log = c.exec(t, 3, exec.CommandContext(t.Context(), program("kubectl-chandlery"), "search", "-n", "olm", "--kubeconfig", kubeconfig))
	contains(t, log, "PackageManifests cannot be read either", "permission to list packagemanifests.packages.operators.coreos.com in namespace olm is missing")
}

// manifestGroup is the group of PackageManifests.
const manifestGroup = "packages.operators.coreos.com"

func manifestDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "packagemanifests." + manifestGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: manifestGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "packagemanifests", Kind: "PackageManifest", ListKind: "PackageManifestList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
}

func lanternManifest(namespace string) *unstructured.Unstructured {
	entry := func(version string) any { return map[string]any{"name": "lantern.v" + version, "version": version} }
	return packageManifest(namespace, "sample", "lantern", map[string]any{
		"name": "stable", "currentCSV": "lantern.v1.2.0", "currentCSVDesc": map[string]any{"displayName": "Lantern", "version": "1.2.0"},
		"entries": []any{entry("1.2.0"), entry("1.1.0"), entry("1.0.0")},
	})
}

// packageManifest returns the PackageManifest of a package with the channel stable, of a catalog in namespace olm.
func packageManifest(namespace, catalog, name string, stable map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": manifestGroup + "/v1", "kind": "PackageManifest", "metadata": map[string]any{"namespace": namespace, "name": name},
		"status": map[string]any{
			"catalogSource": catalog, "catalogSourceNamespace": "olm", "packageName": name, "defaultChannel": "stable", "channels": []any{stable},
		},
	}}
}
