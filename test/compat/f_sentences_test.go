package compat_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// wording reports what is wrong with a text; empty if nothing is.
type wording func(got string) string

func exactly(want string) wording {
	return func(got string) string {
		if got != want {
			return fmt.Sprintf("%q, want exactly %q", got, want)
		}
		return ""
	}
}

func begins(want string) wording {
	return func(got string) string {
		if !strings.HasPrefix(got, want) {
			return fmt.Sprintf("%q, want the beginning %q", got, want)
		}
		return ""
	}
}

func containing(want ...string) wording {
	return func(got string) string {
		for _, w := range want {
			if !strings.Contains(got, w) {
				return fmt.Sprintf("%q, want the part %q", got, w)
			}
		}
		return ""
	}
}

// matches compares a whole text with a regular expression.
func matches(pattern string) wording {
	whole := regexp.MustCompile("^" + pattern + "$")
	return func(got string) string {
		if !whole.MatchString(got) {
			return fmt.Sprintf("%q, want a match of %q", got, pattern)
		}
		return ""
	}
}

type csvChange = func(*operatorsv1alpha1.ClusterServiceVersion)

// versionCase is a ClusterServiceVersion of its own name, and an entry that its conditions must have at some time.
type versionCase struct {
	id     string
	change csvChange
	// before prepares the case; it may be nil. after acts on the existing version.
	before, after func(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion)
	phase         operatorsv1alpha1.ClusterServiceVersionPhase
	reason        operatorsv1alpha1.ConditionReason
	// wording checks the message. It may depend on the name of the Deployment.
	wording func(deployment string) wording
}

func always(t wording) func(string) wording { return func(string) wording { return t } }

// TestVersionSentences checks the messages of phases of ClusterServiceVersions.
func TestVersionSentences(t *testing.T) {
	t.Parallel()
	for _, tc := range slices.Concat(installationCases(), groupCases(), specificationCases(), runningCases()) {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkVersion(c, tc) })
	}
}

// installationCases are versions that install, or lack something.
func installationCases() []versionCase {
	const pending, ready, installing, succeeded, failed = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed
	return []versionCase{
		{id: "F-CSV-RequirementsUnknown", phase: pending, reason: "RequirementsUnknown", wording: always(exactly("requirements not yet checked"))},
		{id: "F-CSV-AllRequirementsMet", phase: ready, reason: "AllRequirementsMet", wording: always(exactly("all requirements found, attempting install"))},
		{id: "F-CSV-Installing", phase: installing, reason: "InstallSucceeded", wording: always(exactly("waiting for install components to report healthy"))},
		{id: "F-CSV-Succeeded", phase: succeeded, reason: "InstallSucceeded", wording: always(exactly("install strategy completed with no errors"))},
		{
			id: "F-CSV-RequirementsNotMet", change: requiring("gears.missing.example"), phase: pending, reason: "RequirementsNotMet",
			wording: always(exactly("one or more requirements couldn't be found")),
		},
		{
			id: "F-CSV-InstallWaiting", change: withoutNode, phase: installing, reason: "InstallWaiting",
			wording: func(d string) wording {
				return exactly(fmt.Sprintf(`installing: waiting for deployment %[1]s to become ready: deployment %[1]q not available: Deployment does not have minimum availability.`, d))
			},
		},
		{
			id: "F-CSV-DeadlineExceeded", change: overdue, phase: failed, reason: "InstallCheckFailed",
			wording: func(d string) wording {
				return exactly(fmt.Sprintf(`install failed: deployment %[1]s not ready before timeout: deployment %[1]q exceeded its progress deadline`, d))
			},
		},
	}
}

// groupCases are versions that do not fit their OperatorGroup.
func groupCases() []versionCase {
	const pending, failed = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseFailed
	return []versionCase{
		{id: "F-CSV-NoOperatorGroup", before: deleteGroup, phase: failed, reason: "NoOperatorGroup", wording: always(exactly("csv in namespace with no operatorgroups"))},
		{
			id: "F-CSV-TooManyOperatorGroups", before: secondGroup, phase: failed, reason: "TooManyOperatorGroups",
			wording: always(exactly("csv created in namespace with multiple operatorgroups, can't pick one automatically")),
		},
		{
			id: "F-CSV-OwnNamespaceUnsupported", change: supporting("AllNamespaces"), phase: failed, reason: "UnsupportedOperatorGroup",
			wording: always(exactly("OwnNamespace InstallModeType not supported, cannot configure to watch own namespace")),
		},
		{
			id: "F-CSV-AllNamespacesUnsupported", change: supporting("OwnNamespace"), before: replaceGroup(operatorsv1.OperatorGroupSpec{}), phase: failed, reason: "UnsupportedOperatorGroup",
			wording: always(exactly("AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces")),
		},
		{
			id: "F-CSV-SingleNamespaceUnsupported", change: supporting("OwnNamespace"), before: replaceGroup(operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"default"}}), phase: failed, reason: "UnsupportedOperatorGroup",
			wording: always(exactly("SingleNamespace InstallModeType not supported, cannot configure to watch one namespace")),
		},
		{
			id: "F-CSV-MultiNamespaceUnsupported", change: supporting("OwnNamespace"), before: replaceGroup(operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"default", "kube-public"}}), phase: failed, reason: "UnsupportedOperatorGroup",
			wording: always(exactly("MultiNamespace InstallModeType not supported, cannot configure to watch 2 namespaces")),
		},
		{
			id: "F-CSV-NoTargetNamespaces", phase: failed, reason: "NoTargetNamespaces",
			before:  emptyGroup,
			wording: always(exactly("no targetNamespaces are matched operatorgroups namespace selection")),
		},
		{
			id: "F-CSV-InstallModesNowSupported", change: supporting("OwnNamespace"), before: replaceGroup(operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"default"}}),
			after: regroup, phase: pending, reason: "RequirementsUnknown", wording: always(exactly("InstallModes now support target namespaces")),
		},
	}
}

// specificationCases are versions with an invalid specification.
func specificationCases() []versionCase {
	const failed = operatorsv1alpha1.CSVPhaseFailed
	return []versionCase{
		{
			id: "F-CSV-InvalidInstallModes", change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
				csv.Spec.InstallModes = append(csv.Spec.InstallModes, csv.Spec.InstallModes[0])
			}, phase: failed, reason: "InvalidInstallModes", wording: always(begins("InstallMode list contains duplicates, cannot make set: ")),
		},
		{
			id: "F-CSV-UnknownStrategy", change: func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.InstallStrategy.StrategyName = "helm" },
			phase: failed, reason: "InvalidInstallStrategy", wording: always(begins("install strategy invalid: unrecognized install strategy")),
		},
		{
			id: "F-CSV-WebhookAllGroups", change: admissionWebhook(webhookRule("*", "things")), phase: failed, reason: "InvalidWebhookDescription",
			wording: always(exactly("webhook rules cannot include all groups")),
		},
		{
			id: "F-CSV-WebhookOLMGroup", change: admissionWebhook(webhookRule("operators.coreos.com", "subscriptions")), phase: failed, reason: "InvalidWebhookDescription",
			wording: always(exactly("webhook rules cannot include the OLM group")),
		},
		{
			id: "F-CSV-WebhookConfigurations", change: admissionWebhook(webhookRule("admissionregistration.k8s.io", "MutatingWebhookConfiguration")), phase: failed, reason: "InvalidWebhookDescription",
			wording: always(exactly("webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources")),
		},
		{
			id: "F-CSV-WebhookNameRepeated", change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
				admissionWebhook(webhookRule("example.com", "things"))(csv)
				csv.Spec.WebhookDefinitions = append(csv.Spec.WebhookDefinitions, csv.Spec.WebhookDefinitions[0])
			}, phase: failed, reason: "InvalidWebhookDescription", wording: always(exactly("CSV contains repeated WebhookDescription name")),
		},
		{
			id: "F-CSV-WebhookNameOfAnotherType", change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
				admissionWebhook(webhookRule("example.com", "things"))(csv)
				second := csv.Spec.WebhookDefinitions[0]
				second.Type = operatorsv1alpha1.MutatingAdmissionWebhook
				csv.Spec.WebhookDefinitions = append(csv.Spec.WebhookDefinitions, second)
			}, phase: failed, reason: "InvalidWebhookDescription", wording: always(exactly("CSV contains repeated WebhookDescription name")),
		},
		{
			id: "F-CSV-ConversionModes", change: convertingWebhook("things.conversion.example"), phase: failed, reason: "InvalidWebhookDescription",
			wording: always(containing("unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces")),
		},
		{
			id: "F-CSV-ConversionWithoutCRDs", change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
				convertingWebhook()(csv)
				supporting("AllNamespaces")(csv)
			}, before: replaceGroup(operatorsv1.OperatorGroupSpec{}), phase: failed, reason: "InvalidWebhookDescription",
			wording: always(containing("unable to manager conversion webhook: conversion webhook must have at least one CRD specified")),
		},
	}
}

// runningCases are versions that run and then change, or conflict with others.
func runningCases() []versionCase {
	const pending, ready, failed = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVPhaseFailed
	return []versionCase{
		{
			id: "F-CSV-OwnerConflict", before: firstOwner, change: nil, phase: failed, reason: "OwnerConflict",
			wording: always(exactly("conflicting CRD owner in namespace")),
		},
		{
			id: "F-CSV-RequirementsNoLongerMet", change: withAccount, before: makeAccount, after: deleteAccount, phase: failed, reason: "RequirementsNotMet",
			wording: always(exactly("requirements no longer met")),
		},
		{
			id: "F-CSV-RequirementsStillNotMet", change: withAccount, before: makeAccount, after: deleteAccount, phase: pending, reason: "RequirementsNotMet",
			wording: always(exactly("requirements not met")),
		},
		{
			id: "F-CSV-DeploymentMissing", after: deleteDeployment, phase: failed, reason: "ComponentUnhealthy",
			wording: func(d string) wording { return exactly("installing: missing deployment with name=" + d) },
		},
		{
			id: "F-CSV-NeedsReinstall", after: deleteDeployment, phase: pending, reason: "NeedsReinstall",
			wording: func(d string) wording { return exactly("installing: missing deployment with name=" + d) },
		},
		{
			id: "F-CSV-DeploymentWithoutHash", after: removeHash, phase: ready, reason: "ComponentUnhealthy",
			wording: func(d string) wording {
				return exactly("installing: deployment " + d + " doesn't have a spec hash, update it")
			},
		},
		{
			id: "F-CSV-DeploymentChanged", after: changeDeploymentSpec, phase: ready, reason: "ComponentUnhealthy",
			wording: always(matches(`installing: deployment changed old hash=\w+, new hash=\w+`)),
		},
		{
			id: "F-CSV-BeingReplaced", after: replaceBy(withoutNode), phase: operatorsv1alpha1.CSVPhaseReplacing, reason: "BeingReplaced",
			wording: always(exactly("being replaced by csv: next.v2")),
		},
		{
			id: "F-CSV-FailForward", change: overdue, before: failForward, after: replaceBy(withoutNode), phase: operatorsv1alpha1.CSVPhaseReplacing, reason: "BeingReplaced",
			wording: always(exactly("Fail Forward is enabled, allowing Failed csv to be replaced by csv: next.v2")),
		},
		{
			id: "F-CSV-StaticProvidedAPIs", before: staticGroup, change: owning("things.static.example"), phase: failed, reason: "CannotModifyStaticOperatorGroupProvidedAPIs",
			wording: always(exactly("static provided api operatorgroup cannot be modified by these apis")),
		},
		{
			id: "F-CSV-IntersectingGroups", before: otherProvider, change: owning("things.intersecting.example"), phase: failed, reason: "InterOperatorGroupOwnerConflict",
			wording: always(exactly("intersecting operatorgroups provide the same apis")),
		},
	}
}

// checkVersion creates the version of a case, and waits for the entry in its conditions.
func checkVersion(c *compattest.Cluster, tc versionCase) {
	// A version that serves all namespaces is copied to the namespaces of other cases.
	csv := c.CSV(strings.ToLower(strings.TrimPrefix(tc.id, "F-CSV-")) + ".v1")
	if tc.before != nil {
		tc.before(c, csv)
	}
	if tc.change != nil {
		tc.change(csv)
	}
	csv.Namespace = c.Namespace
	c.Make(csv)
	if tc.after != nil {
		tc.after(c, csv)
	}
	deployment := ""
	if specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs; len(specs) > 0 {
		deployment = specs[0].Name
	}
	check := tc.wording(deployment)
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(csv); left != "" {
			return left
		}
		return recorded(csv, tc.phase, tc.reason, check)
	})
}

// recorded returns an empty text if the conditions of a version have an entry with a text.
func recorded(csv *operatorsv1alpha1.ClusterServiceVersion, phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason, check wording) string {
	var seen []string
	for _, e := range append(slices.Clone(csv.Status.Conditions), operatorsv1alpha1.ClusterServiceVersionCondition{
		Phase: csv.Status.Phase, Reason: csv.Status.Reason, Message: csv.Status.Message,
	}) {
		if e.Phase == phase && e.Reason == reason && check(e.Message) == "" {
			return ""
		}
		seen = append(seen, fmt.Sprintf("%s (%s): %q", e.Phase, e.Reason, e.Message))
	}
	return "the conditions are\n" + strings.Join(seen, "\n")
}

// phaseOf returns what is missing until a version is in a phase.
func phaseOf(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion, phase operatorsv1alpha1.ClusterServiceVersionPhase) func() string {
	return func() string {
		if left := c.Read(csv); left != "" {
			return left
		}
		if csv.Status.Phase != phase {
			return fmt.Sprintf("%s is %s (%s): %s", csv.Name, csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		}
		return ""
	}
}

func requiring(crd string) csvChange {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: crd, Version: "v1", Kind: "Gear"}}
	}
}

func owning(crd string) csvChange {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: crd, Version: "v1", Kind: "Thing"}}
	}
}

func withoutNode(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.NodeSelector = map[string]string{"compat": "none-has-this"}
}

// overdue makes the Deployment exceed its deadline.
func overdue(csv *operatorsv1alpha1.ClusterServiceVersion) {
	withoutNode(csv)
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.ProgressDeadlineSeconds = ptr.To[int32](2)
}

func supporting(mode operatorsv1alpha1.InstallModeType) csvChange {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.InstallModes = nil
		for _, m := range []operatorsv1alpha1.InstallModeType{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
			csv.Spec.InstallModes = append(csv.Spec.InstallModes, operatorsv1alpha1.InstallMode{Type: m, Supported: m == mode})
		}
	}
}

func webhookRule(replaceGroup, resource string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{replaceGroup}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}
}

func admissionWebhook(r admissionregistrationv1.RuleWithOperations) csvChange {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{
			GenerateName: "check.example.com", Type: operatorsv1alpha1.ValidatingAdmissionWebhook, ContainerPort: 443,
			DeploymentName: csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name, AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), WebhookPath: new("/check"),
			Rules: []admissionregistrationv1.RuleWithOperations{r},
		}}
	}
}

func convertingWebhook(crds ...string) csvChange {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		admissionWebhook(webhookRule("", ""))(csv)
		hook := &csv.Spec.WebhookDefinitions[0]
		hook.Type, hook.Rules, hook.ConversionCRDs = operatorsv1alpha1.ConversionWebhook, nil, crds
	}
}

func ownGroup(c *compattest.Cluster) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}}
}

// awaitTargets waits until the OperatorGroup has its targets. OLM does not compute them without the account.
func awaitTargets(c *compattest.Cluster) {
	group := ownGroup(c)
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(group); left != "" {
			return left
		}
		if len(group.Status.Namespaces) == 0 {
			return "the OperatorGroup has no targets"
		}
		return ""
	})
}

func deleteGroup(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	deleteObject(c, ownGroup(c))
}

// emptyGroup replaces the OperatorGroup by one that selects no namespace.
func emptyGroup(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	deleteObject(c, ownGroup(c))
	g := ownGroup(c)
	g.Name, g.Spec.Selector = "other", &metav1.LabelSelector{MatchLabels: map[string]string{"compat": "none-has-this"}}
	c.Make(g)
}

func secondGroup(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	c.Make(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "second"}})
}

// replaceGroup replaces the specification of the OperatorGroup, and waits until its status has the new targets.
func replaceGroup(spec operatorsv1.OperatorGroupSpec) func(*compattest.Cluster, *operatorsv1alpha1.ClusterServiceVersion) {
	return func(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
		deleteObject(c, ownGroup(c))
		g := ownGroup(c)
		g.Name, g.Spec = "other", spec
		c.Make(g)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(g); left != "" {
				return left
			}
			if g.Status.LastUpdated == nil {
				return "the OperatorGroup has no status"
			}
			return ""
		})
	}
}

// regroup makes the OperatorGroup select its own namespace once the version has failed.
func regroup(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	c.Eventually(compattest.Patience, phaseOf(c, csv, operatorsv1alpha1.CSVPhaseFailed))
	changeObject(c, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "other"}},
		map[string]any{"spec": map[string]any{"targetNamespaces": []string{c.Namespace}}})
}

func failForward(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	changeObject(c, ownGroup(c), map[string]any{"spec": map[string]any{"upgradeStrategy": operatorsv1.UpgradeStrategyUnsafeFailForward}})
}

func staticGroup(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	replaceGroup(operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{c.Namespace}, StaticProvidedAPIs: true})(c, csv)
}

// otherProvider installs a version with the same API in a namespace whose group has the same target.
func otherProvider(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	elsewhere := c.NewNamespace()
	c.Make(&operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{c.Namespace}},
	})
	c.Make(crdNamed("things.intersecting.example", "Thing", "v1"))
	first := c.CSV("first.v1", owning("things.intersecting.example"))
	first.Namespace = elsewhere
	c.Make(first)
	c.Eventually(compattest.Patience, phaseOf(c, first, operatorsv1alpha1.CSVPhaseSucceeded))
	_ = csv
}

// firstOwner installs another version that owns the definition of the version of the case.
func firstOwner(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	c.Make(crdNamed("things.owner.example", "Thing", "v1"))
	owning("things.owner.example")(csv)
	first := c.CSV("first.v1", owning("things.owner.example"))
	c.Make(first)
	c.Eventually(compattest.Patience, phaseOf(c, first, operatorsv1alpha1.CSVPhaseSucceeded))
}

func withAccount(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "crank", Rules: []rbacv1.PolicyRule{}}}
}

func makeAccount(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	c.Make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "crank"}})
}

func deleteAccount(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	c.Eventually(compattest.Patience, phaseOf(c, csv, operatorsv1alpha1.CSVPhaseSucceeded))
	deleteObject(c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "crank"}})
	// OLM does not watch an account that it did not create. A label makes it check the version.
	pause.For(background(c), time.Second)
	changeObject(c, csv, map[string]any{"metadata": map[string]any{"labels": map[string]any{"checked": "again"}}})
}

func deleteDeployment(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	c.Eventually(compattest.Patience, phaseOf(c, csv, operatorsv1alpha1.CSVPhaseSucceeded))
	deleteObject(c, deploymentOf(csv))
}

func removeHash(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	c.Eventually(compattest.Patience, phaseOf(c, csv, operatorsv1alpha1.CSVPhaseSucceeded))
	changeObject(c, deploymentOf(csv), map[string]any{"metadata": map[string]any{"labels": map[string]any{"olm.deployment-spec-hash": nil}}})
}

func changeDeploymentSpec(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	c.Eventually(compattest.Patience, phaseOf(c, csv, operatorsv1alpha1.CSVPhaseSucceeded))
	changed := csv.DeepCopy()
	changed.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "registry.example/operator:2"
	changeObject(c, csv, map[string]any{"spec": map[string]any{"install": changed.Spec.InstallStrategy}})
}

// replaceBy creates a version that replaces the one of the case, once that one runs or has failed.
func replaceBy(change csvChange) func(*compattest.Cluster, *operatorsv1alpha1.ClusterServiceVersion) {
	return func(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(csv); left != "" {
				return left
			}
			if p := csv.Status.Phase; p != operatorsv1alpha1.CSVPhaseSucceeded && p != operatorsv1alpha1.CSVPhaseFailed {
				return "the phase is " + string(p)
			}
			return ""
		})
		c.Make(c.CSV("next.v2", change, func(next *operatorsv1alpha1.ClusterServiceVersion) { next.Spec.Replaces = csv.Name }))
	}
}

// crdNamed returns a CustomResourceDefinition of a group and resource.
func crdNamed(name, kind string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	plural, replaceGroup, _ := strings.Cut(name, ".")
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	crd.Spec.Group, crd.Spec.Scope = replaceGroup, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, Singular: strings.ToLower(kind), ListKind: kind + "List"}
	for i, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
		})
	}
	return crd
}

func deleteObject(c *compattest.Cluster, o client.Object) {
	c.Eventually(compattest.Patience, func() string {
		if err := c.Delete(background(c), o); err != nil {
			return err.Error()
		}
		return ""
	})
}

func changeObject(c *compattest.Cluster, o client.Object, change map[string]any) {
	content, err := json.Marshal(change)
	c.Eventually(compattest.Patience, func() string {
		if err != nil {
			return err.Error()
		}
		if err := c.Patch(background(c), o, client.RawPatch("application/merge-patch+json", content)); err != nil {
			return err.Error()
		}
		return ""
	})
}

// policyRule is a rule that no account has.
func policyRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}
}
