package compat_test

import (
	"fmt"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// TestInstallationSentences checks the messages of versions that cannot be installed, or that another version replaces.
func TestInstallationSentences(t *testing.T) {
	t.Parallel()
	const pending, installing, failed = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVPhaseFailed
	const foreign = "things.foreign.example"
	for _, tc := range []versionCase{
		{
			id: "F-CSV-APIServicesMissing", change: ownsAPIs("f-missing.hats.example"), phase: installing, reason: "InstallWaiting",
			wording: always(exactly("apiServices not installed")),
		},
		{
			id: "F-CSV-APIServiceConflict", change: ownsAPIs("f-taken.hats.example"), phase: failed, reason: "OwnerConflict",
			before: func(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
				c.Make(localAPIService("f-taken.hats.example", nil))
			}, wording: always(exactly("unable to adopt APIService")),
		},
		{
			id: "F-CSV-DeploymentRefused", change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
				csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Name = "Not A Name"
			}, phase: failed, reason: "InstallComponentFailed", wording: func(d string) wording {
				return bothOf(begins("install strategy failed: "), containing(fmt.Sprintf(`Deployment.apps %q is invalid: `, d)))
			},
		},
		{
			id: "F-CSV-AccountForbidden", before: groupWithAccount, phase: failed, reason: "InstallComponentFailedNoRetry",
			wording: func(d string) wording {
				return bothOf(begins("install strategy failed: install strategy failed: deployments.apps "), containing(` is forbidden: User "system:serviceaccount:`))
			},
		},
		{
			id: "F-CSV-ConversionCRDNotOwned", change: convertsForeign(foreign), phase: failed, reason: "InvalidWebhookDescription",
			before: func(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
				replaceGroup(operatorsv1.OperatorGroupSpec{})(c, csv)
				c.Make(crdNamed(foreign, "Thing", "v1"))
			}, wording: always(containing("csv conversioncrdnotowned.v1 does not own CRD " + foreign)),
		},
		{
			id: "F-CSV-StaticNowSupported", before: staticGroup, change: owning("things.unstatic.example"), after: unsetStatic, phase: pending, reason: "RequirementsUnknown",
			wording: always(exactly("static OperatorGroup and intersecting groups now support providedAPIs")),
		},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkVersion(c, tc) })
	}
	compattest.Check(t, "F-CSV-Replaced", func(t *testing.T, c *compattest.Cluster) {
		log := logVersions(t, c, c.Namespace)
		csv := c.CSV("replaced.v1")
		c.Make(csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		c.Make(c.CSV("replaced.v2", func(next *operatorsv1alpha1.ClusterServiceVersion) { next.Spec.Replaces = csv.Name }))
		c.Gone(compattest.Patience, csv.DeepCopy())
		last := log.last(csv.Name)
		if left := recorded(&last, operatorsv1alpha1.CSVPhaseDeleting, "Replaced", exactly("has been replaced by a newer ClusterServiceVersion that has successfully installed.")); left != "" {
			t.Error(left)
		}
	})
	compattest.Check(t, "F-CSV-Copied", func(t *testing.T, c *compattest.Cluster) {
		other := c.NewNamespace()
		targetNamespaces(t, c, c.Namespace, "group", c.Namespace, other)
		csv := c.CSV("copied.v1")
		c.Make(csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		copied := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: csv.Name}}
		reaches(c, copied, operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVReasonCopied)
		if left := exactly("The operator is running in " + c.Namespace + " but is managing this namespace")(copied.Status.Message); left != "" {
			t.Error(left)
		}
	})
	compattest.Check(t, "F12", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("crank.v1", requiring("gears.missing.example"), admissionWebhook(webhookRule("*", "things")))
		c.Make(csv)
		reaches(c, csv, failed, operatorsv1alpha1.CSVReasonInvalidWebhookDescription)
		if left := exactly("webhook rules cannot include all groups")(csv.Status.Message); left != "" {
			t.Error(left)
		}
	})
}

// groupWithAccount makes the OperatorGroup name an account without permissions.
func groupWithAccount(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	c.Make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "installer"}})
	group := ownGroup(c)
	changeObject(c, group, map[string]any{"spec": map[string]any{"serviceAccountName": "installer"}})
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(group); left != "" {
			return left
		}
		if group.Status.ServiceAccountRef == nil {
			return "the status of the OperatorGroup names no account"
		}
		return ""
	})
}

// convertsForeign gives a version a conversion webhook for a definition that it does not own, and that exists if
// another operator installed it.
func convertsForeign(crd string) csvChange {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		convertingWebhook(crd)(csv)
		supporting("AllNamespaces")(csv)
	}
}

func unsetStatic(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	c.Eventually(compattest.Patience, phaseOf(c, csv, operatorsv1alpha1.CSVPhaseFailed))
	changeObject(c, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "other"}},
		map[string]any{"spec": map[string]any{"staticProvidedAPIs": false}})
}

// TestPresenceSentences checks further entries of status.requirementStatus.
func TestPresenceSentences(t *testing.T) {
	t.Parallel()
	const crd, apis = "apiextensions.k8s.io", "apiregistration.k8s.io"
	for _, tc := range []requirementCase{
		{
			id: "F-Requirement-CRDNotEstablished", change: requiring("gears.names.example"),
			before: func(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
				first := crdNamed("wheels.names.example", "Gear", "v1")
				c.Make(first)
				c.Eventually(compattest.Patience, func() string {
					if left := c.Read(first); left != "" || len(first.Status.Conditions) > 0 {
						return left
					}
					return "the definition has no conditions"
				})
				c.Make(crdNamed("gears.names.example", "Gear", "v1"))
			},
			want:    [5]string{crd, "v1", "CustomResourceDefinition", "gears.names.example", "PresentNotAvailable"},
			wording: exactly("CRD is present but the Established condition is False (not available)"),
		},
		{
			id: "F-Requirement-DeploymentNotFound", change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
				ownsAPIs("f-nowhere.hats.example")(csv)
				csv.Spec.APIServiceDefinitions.Owned[0].DeploymentName = "nowhere"
			}, want: [5]string{apis, "v1", "APIService", "v1.f-nowhere.hats.example", "DeploymentNotFound"}, wording: exactly(""),
		},
		{
			id: "F-Requirement-APIServicePresent", change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
				requiring("gears.missing.example")(csv)
				csv.Spec.APIServiceDefinitions.Required = []operatorsv1alpha1.APIServiceDescription{{Name: "gears", Group: "f-present.example", Version: "v1", Kind: "Gear"}}
			}, before: func(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
				// The API server creates the APIService of the group.
				c.Make(crdNamed("gears.f-present.example", "Gear", "v1"))
			}, want: [5]string{apis, "v1", "APIService", "v1.f-present.example", "Present"}, wording: exactly(""),
		},
		{
			id: "F-Requirement-RuleSatisfied", before: accountWithRule, change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
				csv.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "crank", Rules: []rbacv1.PolicyRule{policyRule()}}}
			}, want: [5]string{"", "v1", "ServiceAccount", "crank", "Present"}, wording: exactly(""),
			dependent: &[2]string{"Satisfied", `namespaced rule:{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}`},
		},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkRequirement(c, tc) })
	}
	compattest.Check(t, "F-Requirement-CRDOfOther", testDefinitionOfOther)
}

// accountWithRule creates the account of the version with the rule that it needs.
func accountWithRule(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	makeAccount(c, nil)
	meta := metav1.ObjectMeta{Namespace: c.Namespace, Name: "crank"}
	c.Make(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{policyRule()}}, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: meta.Namespace, Name: meta.Name}},
	})
}

// testDefinitionOfOther has an update whose definition is not applied yet.
func testDefinitionOfOther(t *testing.T, c *compattest.Cluster) {
	const crd = "gears.alongside.example"
	entry := func(csv *operatorsv1alpha1.ClusterServiceVersion, version string, served ...string) fakecatalog.Entry {
		e := lampEntry(c, csv, version)
		e.Objects = append(e.Objects, c.Manifest(crdNamed(crd, "Gear", served...)))
		return e
	}
	one := c.CSV("crank.v1", owning(crd))
	two := c.CSV("crank.v2", owning(crd), func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Replaces = one.Name })
	shop := c.Catalog("shop", fakecatalog.Simple("crank", entry(one, "1.0.0", "v1")))
	sub := c.Subscribe("shop", "crank", onStable)
	c.Eventually(compattest.Patience, isInstalled(c, sub, one.Name))
	refuse(t, c, requests{"apiextensions.k8s.io", "customresourcedefinitions", admissionregistrationv1.Update, fmt.Sprintf("request.name == %q", crd)})
	replaceContent(shop, fakecatalog.Simple("crank", entry(one, "1.0.0", "v1"), entry(two, "2.0.0", "v1", "v2")))
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(two); left != "" {
			return left
		}
		for _, r := range two.Status.RequirementStatus {
			if r.Name == crd && r.Status == operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied {
				return exactly("CRD installed alongside other CSV(s): crank.v1")(r.Message)
			}
		}
		return "the status is " + c.Manifest(two.Status)
	})
}
