package compat_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/compat/compattest"
)

// background returns a context for the requests of a case.
func background(*compattest.Cluster) context.Context { return context.Background() }

func deploymentOf(csv *operatorsv1alpha1.ClusterServiceVersion) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: csv.Namespace, Name: csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name}}
}

// requirementCase is a version with a requirement, and the entry of status.requirementStatus about it.
type requirementCase struct {
	id     string
	before func(*compattest.Cluster, *operatorsv1alpha1.ClusterServiceVersion)
	change csvChange
	// want is group, version, kind, name and status; "*" stands for any name.
	want    [5]string
	wording wording
	// dependent checks an entry of dependents; nil for none.
	dependent *[2]string
}

// TestRequirementSentences checks the entries of status.requirementStatus.
func TestRequirementSentences(t *testing.T) {
	t.Parallel()
	permissions := func(cluster bool) csvChange {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			list := []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "crank", Rules: []rbacv1.PolicyRule{policyRule()}}}
			if cluster {
				csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = list
			} else {
				csv.Spec.InstallStrategy.StrategySpec.Permissions = list
			}
		}
	}
	native := func(gvk metav1.GroupVersionKind) csvChange {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Spec.NativeAPIs = []metav1.GroupVersionKind{gvk}
			requiring("gears.missing.example")(csv)
		}
	}
	kube := func(minimum string) csvChange {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Spec.MinKubeVersion = minimum
			requiring("gears.missing.example")(csv)
		}
	}
	apiService := func(deployment string, owned bool) csvChange {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			d := []operatorsv1alpha1.APIServiceDescription{{Name: "gears", Group: "served.example", Version: "v1", Kind: "Gear", DeploymentName: deployment, ContainerPort: 443}}
			if deployment == "crank" {
				d[0].DeploymentName = csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name
			}
			if owned {
				csv.Spec.APIServiceDefinitions.Owned = d
			} else {
				csv.Spec.APIServiceDefinitions.Required = d
			}
			requiring("gears.missing.example")(csv)
		}
	}
	defined := func(name string, versions ...string) func(*compattest.Cluster, *operatorsv1alpha1.ClusterServiceVersion) {
		return func(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
			c.Make(crdNamed(name, "Gear", versions...))
		}
	}
	const crd, apis = "apiextensions.k8s.io", "apiregistration.k8s.io"
	for _, tc := range []requirementCase{
		{id: "F-Requirement-CRDMissing", change: requiring("gears.missing.example"), want: [5]string{crd, "v1", "CustomResourceDefinition", "gears.missing.example", "NotPresent"}, wording: exactly("CRD is not present")},
		{
			id: "F-Requirement-CRDVersion", before: defined("gears.versions.example", "v2"), change: requiring("gears.versions.example"),
			want: [5]string{crd, "v1", "CustomResourceDefinition", "gears.versions.example", "NotPresent"}, wording: exactly("CRD version not served"),
		},
		{
			id: "F-Requirement-CRDPresent", before: defined("gears.present.example", "v1"), change: requiring("gears.present.example"),
			want: [5]string{crd, "v1", "CustomResourceDefinition", "gears.present.example", "Present"}, wording: exactly("CRD is present and Established condition is true"),
		},
		{id: "F-Requirement-NativeAPI", change: native(metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}), want: [5]string{"apps", "v1", "Deployment", "v1.apps", "Present"}, wording: exactly("Native API exists")},
		{id: "F-Requirement-NativeAPIMissing", change: native(metav1.GroupVersionKind{Group: "apps", Version: "v9", Kind: "Nothing"}), want: [5]string{"apps", "v9", "Nothing", "v9.apps", "NotPresent"}, wording: exactly("Native API does not exist")},
		{id: "F-Requirement-KubeVersion", change: kube("1.10.0"), want: [5]string{"operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "crank.v1", "Present"}, wording: matches(`CSV minKubeVersion \(1\.10\.0\) less than server version \(v1\.\d+\.\d+\S*\)`)},
		{id: "F-Requirement-KubeVersionTooOld", change: kube("1.999.0"), want: [5]string{"operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "crank.v1", "PresentNotSatisfied"}, wording: matches(`CSV version requirement not met: minKubeVersion \(1\.999\.0\) > server version \(1\.\d+\.\d+\S*\)`)},
		{id: "F-Requirement-KubeVersionInvalid", change: kube("one"), want: [5]string{"operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "crank.v1", "PresentNotSatisfied"}, wording: exactly("CSV version parsing error")},
		{id: "F-Requirement-AccountMissing", change: withAccount, want: [5]string{"", "v1", "ServiceAccount", "crank", "NotPresent"}, wording: exactly("Service account does not exist")},
		{id: "F-Requirement-Account", before: makeAccount, change: withAccount, want: [5]string{"", "v1", "ServiceAccount", "crank", "Present"}, wording: exactly("")},
		{
			id: "F-Requirement-AccountOfOther", before: ownedAccount, change: withAccount,
			want: [5]string{"", "v1", "ServiceAccount", "crank", "PresentNotSatisfied"}, wording: exactly("Service account is owned by another ClusterServiceVersion"),
		},
		{
			id: "F-Requirement-RuleMissing", before: makeAccount, change: permissions(false), want: [5]string{"", "v1", "ServiceAccount", "crank", "PresentNotSatisfied"},
			wording: exactly("Policy rule not satisfied for service account"), dependent: &[2]string{"NotSatisfied", `namespaced rule:{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}`},
		},
		{
			id: "F-Requirement-ClusterRuleMissing", before: makeAccount, change: permissions(true), want: [5]string{"", "v1", "ServiceAccount", "crank", "PresentNotSatisfied"},
			wording: exactly("Policy rule not satisfied for service account"), dependent: &[2]string{"NotSatisfied", `cluster rule:{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}`},
		},
		{id: "F-Requirement-APIServiceMissing", change: apiService("", false), want: [5]string{apis, "v1", "APIService", "v1.served.example", "NotPresent"}, wording: exactly("")},
		{id: "F-Requirement-DeploymentFound", change: apiService("crank", true), want: [5]string{apis, "v1", "APIService", "v1.served.example", "DeploymentFound"}, wording: exactly("")},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkRequirement(c, tc) })
	}
}

func checkRequirement(c *compattest.Cluster, tc requirementCase) {
	csv := c.CSV("crank.v1")
	if tc.before != nil {
		tc.before(c, csv)
	}
	tc.change(csv)
	c.Make(csv)
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(csv); left != "" {
			return left
		}
		var seen []string
		for _, r := range csv.Status.RequirementStatus {
			got := [5]string{r.Group, r.Version, r.Kind, r.Name, string(r.Status)}
			if got == tc.want && tc.wording(r.Message) == "" && hasDependent(r.Dependents, tc.dependent) {
				return ""
			}
			seen = append(seen, fmt.Sprintf("%q: %q %+v", got, r.Message, r.Dependents))
		}
		return "the requirements are\n" + strings.Join(seen, "\n")
	})
}

func hasDependent(list []operatorsv1alpha1.DependentStatus, want *[2]string) bool {
	for _, d := range list {
		if want != nil && d.Group == "rbac.authorization.k8s.io" && d.Kind == "PolicyRule" && d.Version == "v1" && string(d.Status) == want[0] && d.Message == want[1] {
			return true
		}
	}
	return want == nil
}

// ownedAccount creates an account that another version owns.
func ownedAccount(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	other := c.CSV("other.v1")
	c.Make(other)
	makeAccount(c, nil)
	changeObject(c, accountNamed(c, "crank"), map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{
		{APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion, Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: other.Name, UID: other.UID},
	}}})
}

func accountNamed(c *compattest.Cluster, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
}

func anObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func packageRequired(name, versions string) *api.Property {
	return &api.Property{Type: "olm.package.required", Value: fmt.Sprintf(`{"packageName":%q,"versionRange":%q}`, name, versions)}
}
