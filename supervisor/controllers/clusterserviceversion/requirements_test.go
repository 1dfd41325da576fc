package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

func cup(change ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "cups.example.com", UID: "crd-1"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Served: true}, {Name: "v1alpha1"},
		}},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
			{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
		}},
	}
	for _, c := range change {
		c(crd)
	}
	return crd
}

func TestCRDStatus(t *testing.T) {
	cases := map[string]struct {
		reason  string
		version string
		crd     *apiextensionsv1.CustomResourceDefinition
		want    operatorsv1alpha1.StatusReason
		message string
	}{
		"Missing": {"no such definition", "v1", nil, "NotPresent", "CRD is not present"},
		"Present": {"served and established", "v1", cup(), "Present", "CRD is present and Established condition is true"},
		"NotServed": {
			"the version is there but switched off", "v1alpha1", cup(), "NotPresent", `CRD version not served`,
		},
		"ServedLater": {"its own webhook comes first", "v2", cup(func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Annotations = map[string]string{api.AnnotationServedVersions: "foo/kettle.v1:v2"}
			c.Spec.Versions = append(c.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2"})
		}), "Present", "CRD is present and Established condition is true"},
		"ServedLaterForAnother": {"another's webhook comes first", "v2", cup(func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Annotations = map[string]string{api.AnnotationServedVersions: "foo/kettle.v2:v2"}
			c.Spec.Versions = append(c.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2"})
		}), "NotPresent", `CRD version not served`},
		"NotEstablished": {"not available yet", "v1", cup(func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Status.Conditions[0].Status = apiextensionsv1.ConditionFalse
		}), "PresentNotAvailable", "CRD is present but the Established condition is False (not available)"},
		"AnyVersion": {"no version asked for", "", cup(), "Present", "CRD is present and Established condition is true"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := crdStatus(operatorsv1alpha1.CRDDescription{Name: "cups.example.com", Version: tc.version}, tc.crd, types.NamespacedName{Namespace: "foo", Name: "kettle.v1"})
			want := operatorsv1alpha1.RequirementStatus{
				Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "cups.example.com",
				Status: tc.want, Message: tc.message,
			}
			if tc.crd != nil {
				want.UUID = "crd-1"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\ncrdStatus(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKubeVersion(t *testing.T) {
	cases := map[string]struct {
		minimum, server string
		want            operatorsv1alpha1.StatusReason
	}{
		"Newer":         {"1.20.0", "v1.36.3", "Present"},
		"Same":          {"1.36.3", "v1.36.3", "Present"},
		"Older":         {"1.99.0", "v1.36.3", "PresentNotSatisfied"},
		"VendorSuffix":  {"1.36.3", "v1.36.3-gke.100", "Present"},
		"BuildSuffix":   {"1.36.3", "v1.36.3+k3s1", "Present"},
		"ShortMinimum":  {"1.20", "v1.36.3", "Present"},
		"LeadingV":      {"v1.20.0", "v1.36.3", "Present"},
		"BrokenMinimum": {"soon", "v1.36.3", "PresentNotSatisfied"},
		"BrokenServer":  {"1.20.0", "", "PresentNotSatisfied"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			csv.Spec.MinKubeVersion = tc.minimum
			got := kubeVersion(csv, cluster{Version: tc.server})
			if len(got) != 1 || got[0].Status != tc.want || got[0].Message == "" {
				t.Errorf("kubeVersion(%s on %s) = %+v, want status %s", tc.minimum, tc.server, got, tc.want)
			}
		})
	}
}

func policy(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}
}

func boiler() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Name: "boiler", Namespace: "kitchen"}}
}

func TestServiceAccounts(t *testing.T) {
	asking := kettle()
	asking.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{
		{ServiceAccountName: "boiler", Rules: []rbacv1.PolicyRule{policy("get", "list")}},
	}
	asking.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []operatorsv1alpha1.StrategyDeploymentPermissions{
		{ServiceAccountName: "boiler", Rules: []rbacv1.PolicyRule{policy("watch")}},
	}
	account := func(owners ...metav1.OwnerReference) map[string]*metav1.PartialObjectMetadata {
		return map[string]*metav1.PartialObjectMetadata{"boiler": {ObjectMeta: metav1.ObjectMeta{Name: "boiler", OwnerReferences: owners}}}
	}
	local := rbac{
		Roles:        []rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{policy("get", "list")}}},
		RoleBindings: []rbacv1.RoleBinding{{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: boiler()}},
	}
	everything := rbac{
		ClusterRoles: []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		}}},
		ClusterRoleBindings: []rbacv1.ClusterRoleBinding{{
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "all"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:kitchen"}},
		}},
	}
	old := kettle()
	old.Name, old.UID = "kettle.v0", "uid-0"
	cases := map[string]struct {
		reason     string
		cluster    cluster
		want       operatorsv1alpha1.StatusReason
		dependents []operatorsv1alpha1.StatusReason
	}{
		"Missing":  {"no service account", cluster{}, "NotPresent", nil},
		"NoRules":  {"an account without rights", cluster{Accounts: account()}, "PresentNotSatisfied", []operatorsv1alpha1.StatusReason{"NotSatisfied", "NotSatisfied"}},
		"OnlyHere": {"a role does not reach other namespaces", cluster{Accounts: account(), RBAC: local}, "PresentNotSatisfied", []operatorsv1alpha1.StatusReason{"Satisfied", "NotSatisfied"}},
		"Everywhere": {
			"wider rights given to a group cover both",
			cluster{Accounts: account(), RBAC: everything},
			"Present",
			[]operatorsv1alpha1.StatusReason{"Satisfied", "Satisfied"},
		},
		"OwnedByOld": {
			"the account would go with the old version",
			cluster{
				Accounts: account(metav1.OwnerReference{Kind: "ClusterServiceVersion", Name: "kettle.v0", UID: "uid-0"}),
				RBAC:     everything, Others: versions.List{old},
			},
			"PresentNotSatisfied", nil,
		},
		"OwnedByBoth": {
			"one owner is enough to keep it",
			cluster{
				Accounts: account(
					metav1.OwnerReference{Kind: "ClusterServiceVersion", Name: "kettle.v0", UID: "uid-0"},
					metav1.OwnerReference{Kind: "ClusterServiceVersion", Name: "kettle.v1", UID: "uid-1"},
				),
				RBAC: everything, Others: versions.List{old},
			},
			"Present",
			[]operatorsv1alpha1.StatusReason{"Satisfied", "Satisfied"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := serviceAccounts(asking, tc.cluster)
			if len(got) != 1 || got[0].Status != tc.want {
				t.Fatalf("%s\nserviceAccounts(...) = %+v, want status %s", tc.reason, got, tc.want)
			}
			var dependents []operatorsv1alpha1.StatusReason
			for _, d := range got[0].Dependents {
				dependents = append(dependents, d.Status)
			}
			if diff := cmp.Diff(tc.dependents, dependents); diff != "" {
				t.Errorf("%s\ndependents: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
