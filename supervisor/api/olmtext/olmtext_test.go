package olmtext_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/manifests"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// row is a sentence of OLM with example values.
type row struct {
	// field is the kind and the field, with a type of a condition; reason is the reason beside it.
	field, reason string
	// comparison is =, ^ or ~: the sentence is the whole text, its beginning, or a part of it.
	comparison string
	// got is the sentence as the supervisor writes it, and want as OLM writes it.
	got, want string
}

func errNo() error { return errors.New("no") }

// supports returns the error for an OperatorGroup whose targets a version does not support.
func supports(targets ...string) string {
	err := operatorsv1alpha1.InstallModeSet{}.Supports("home", targets)
	return fmt.Sprint(err)
}

// incompleteManifest returns the message for a file of a bundle image. The reader of images does not depend on olmtext.
func incompleteManifest(text string) string {
	_, err := manifests.Read(fstest.MapFS{"csv.yaml": {Data: []byte(text)}}, manifests.Limits{})
	problems, is := errors.AsType[bundles.Problems](err)
	if !is {
		return fmt.Sprint(err)
	}
	return problems[0].Message
}

// table has all sentences that OLM's clients compare.
func table() []row {
	const (
		catalogs, unresolved, unpack, planning = "Subscription CatalogSourcesUnhealthy", "Subscription ResolutionFailed", "Subscription BundleUnpackFailed", "Subscription InstallPlanPending"
		plan, installed                        = "InstallPlan status.message", "InstallPlan Installed"
		csv, requirement                       = "ClusterServiceVersion status.message", "ClusterServiceVersion status.requirementStatus"
		catalog, template                      = "CatalogSource status.message", "CatalogSource TemplatesHaveResolved"
		copies                                 = "OLMConfig DisabledCopiedCSVs"
	)
	return []row{
		{catalogs, "AllCatalogSourcesHealthy", "=", olmtext.CatalogsHealthy, "all available catalogsources are healthy"},
		{catalogs, "UnhealthyCatalogSourceFound", "=", olmtext.CatalogMissing("olm/shop"), "targeted catalogsource olm/shop missing"},
		{catalogs, "UnhealthyCatalogSourceFound", "=", olmtext.CatalogUnhealthy("olm/shop"), "targeted catalogsource olm/shop unhealthy"},
		{catalogs, "NoCatalogSourcesFound", "=", olmtext.NoCatalogs, "dependency resolution requires at least one catalogsource"},
		{planning, "Planning", "=", olmtext.PendingLookups([]string{"a", "b"}), "a. b."},
		{planning, "Installing", "=", olmtext.PendingLookups(nil), ""},
		{unresolved, "ConstraintsNotSatisfiable", "^", olmtext.Unsatisfiable([]string{"a", "b"}), "constraints not satisfiable: a, b"},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.CatalogNotFound("shop", "olm", "my-lamp"),
			"no operators found from catalog shop in namespace olm referenced by subscription my-lamp",
		},
		{unresolved, "ConstraintsNotSatisfiable", "~", olmtext.PackageNotFound("lamp", "my-lamp"), "no operators found in package lamp in the catalog referenced by subscription my-lamp"},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.ChannelNotFound("stable", "lamp", "my-lamp"),
			"no operators found in channel stable of package lamp in the catalog referenced by subscription my-lamp",
		},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.VersionNotFound("lamp.v1", "stable", "lamp", "my-lamp"),
			"no operators found with name lamp.v1 in channel stable of package lamp in the catalog referenced by subscription my-lamp",
		},
		{unresolved, "ConstraintsNotSatisfiable", "~", olmtext.SubscriptionExists("my-lamp"), "subscription my-lamp exists"},
		{unresolved, "ConstraintsNotSatisfiable", "~", olmtext.SubscriptionRequires("my-lamp", []string{"a"}), "subscription my-lamp requires a"},
		{unresolved, "ConstraintsNotSatisfiable", "~", olmtext.SubscriptionRequires("my-lamp", []string{"a", "b", "c"}), "subscription my-lamp requires at least one of a, b or c"},
		{unresolved, "ConstraintsNotSatisfiable", "~", olmtext.VersionUnreferenced("lamp.v1"), "clusterserviceversion lamp.v1 exists and is not referenced by a subscription"},
		{unresolved, "ConstraintsNotSatisfiable", "~", olmtext.VersionDeprecated("shop/olm/stable/lamp.v1"), "bundle shop/olm/stable/lamp.v1 is deprecated"},
		{unresolved, "ConstraintsNotSatisfiable", "~", olmtext.OnePerPackage("lamp"), "there can be only one operator from package lamp"},
		{unresolved, "ConstraintsNotSatisfiable", "~", olmtext.SamePackage("a", "b", "lamp"), "a and b originate from package lamp"},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.OneProvider(olmtext.KindOf("lamps.example", "v1", "Lamp")),
			"there can be only one provider of Lamp (lamps.example/v1)",
		},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.SameAPI("a", "b", olmtext.KindOf("lamps.example", "v1", "Lamp")),
			"a and b provide Lamp (lamps.example/v1)",
		},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.BundleRequires("lamp.v1", olmtext.ProvidingAPI("wicks.example", "v1", "Wick")),
			"bundle lamp.v1 requires an operator providing an API with group: wicks.example, version: v1, kind: Wick",
		},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.BundleRequires("lamp.v1", olmtext.PackageInRange("wick", ">=1.0.0")),
			"bundle lamp.v1 requires an operator with package: wick and with version in range: >=1.0.0",
		},
		{unresolved, "ConstraintsNotSatisfiable", "~", olmtext.BundleRequires("lamp.v1", olmtext.WithLabel("bright")), "bundle lamp.v1 requires an operator with label: bright"},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.NoChannelHead(`"stable"`, `"lamp"`),
			`no channel heads (entries not replaced by another entry) found in channel "stable" of package "lamp"`,
		},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.ChannelCycle(`"a"`, `"stable"`, `"lamp"`),
			`a cycle exists in the chain of replacement beginning with "a" in channel "stable" of package "lamp"`,
		},
		{
			unresolved, "ConstraintsNotSatisfiable", "~", olmtext.SeveralChains(2, `"stable"`, `"lamp"`, "a...b, c"),
			`a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "lamp": a...b, c`,
		},
		{unresolved, "ErrorPreventedResolution", "~", fmt.Errorf(olmtext.ConstraintUndecodable, errNo()).Error(), "parse olm.constraint: no"},
		{unresolved, "ErrorPreventedResolution", "~", fmt.Errorf(olmtext.ConstraintInvalid, errNo()).Error(), "convert olm.constraint to resolver predicate: no"},
		{
			unresolved, "ErrorPreventedResolution", "^", olmtext.StepsFailed(errors.New(olmtext.IncompleteCSV("lamp.v1", "Kind"))),
			"failed to turn bundle into steps: bundle CSV lamp.v1 missing Kind",
		},
		{unresolved, "ErrorPreventedResolution", "=", olmtext.ExpectedOneGroup(2), "expected 1 OperatorGroup in the namespace, found 2"},
		{unresolved, "ErrorPreventedResolution", "^", olmtext.CatalogError("olm/shop", olmtext.ListBundlesFailed(errNo())), "error using catalogsource olm/shop: failed to list bundles: no"},
		{
			unresolved, "ErrorPreventedResolution", "=", olmtext.CatalogError("olm/shop", olmtext.NoRegistryClient("olm/shop")),
			"error using catalogsource olm/shop: no registry client established for catalogsource olm/shop",
		},
		{unpack, "BundleUnpackFailed", "^", olmtext.UnpackFailed("NotFound", "m"), "Bundle unpacking failed - NotFound: m"},
		{unpack, "ErrorPreventedUnpacking", "~", olmtext.IncompleteCSV("lamp.v1", "APIVersion"), "bundle CSV lamp.v1 missing APIVersion"},
		{unpack, "ErrorPreventedUnpacking", "~", olmtext.IncompleteCSV("lamp.v1", "Kind"), "bundle CSV lamp.v1 missing Kind"},
		{unpack, "ErrorPreventedUnpacking", "~", incompleteManifest(`{"apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"lamp.v1"}}`), "bundle CSV lamp.v1 missing Kind"},
		{unpack, "ErrorPreventedUnpacking", "~", incompleteManifest(`{"kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"}}`), "bundle CSV lamp.v1 missing APIVersion"},
		{unpack, "EnsureInstallPlanFailed", "^", olmtext.EnsurePlanFailed(errNo()), "error ensuring InstallPlan: no"},
		{"Subscription PackageDeprecated", "", "=", olmtext.Deprecation("olm.package/lamp", "old"), "olm.package/lamp: old"},
		{"Subscription ChannelDeprecated", "", "=", olmtext.Deprecation("olm.channel/stable", "old"), "olm.channel/stable: old"},
		{"Subscription BundleDeprecated", "", "=", olmtext.Deprecation("olm.bundle/lamp.v1", "old"), "olm.bundle/lamp.v1: old"},
		{"Subscription Deprecated", "", "=", olmtext.Deprecations([]string{"a", "b", "c"}), "a; b; c"},

		{plan, "", "^", olmtext.Retrying, "retrying execution due to error: "},
		{installed, "InstallCheckFailed", "=", olmtext.NoGroupForPlan, "no operator group found that is managing this namespace"},
		{installed, "InstallCheckFailed", "=", olmtext.SeveralGroupsForPlan(2), "more than one operator group(s) are managing this namespace count=2"},
		{installed, "InstallCheckFailed", "=", olmtext.AccountMissing("bob", "home/group"), "please make sure the service account exists. sa=bob operatorgroup=home/group"},
		{installed, "InstallComponentFailed", "~", olmtext.InvalidPlanData, "the InstallPlan contains invalid data"},
		{
			installed, "InstallComponentFailed", "~", olmtext.APINotServed("lamps.example", "v1", "Lamp", "shine"),
			"api-server resource not found installing Lamp shine: GroupVersionKind lamps.example/v1, Kind=Lamp not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.",
		},
		{installed, "InstallComponentFailed", "~", olmtext.KindNotServed("lamps.example", "v1", "Lamp"), "Unable to find GVK in discovery: lamps.example v1 Lamp"},
		{
			installed, "InstallComponentFailed", "~", olmtext.StoredVersionRemoved("lamps.example", "v1"),
			`risk of data loss updating "lamps.example": new CRD removes version v1 that is listed as a stored version on the existing CRD`,
		},
		{
			installed, "InstallComponentFailed", "~", olmtext.ObjectsInvalid("lamps.example", olmtext.ObjectInvalid("example/v1, Kind=Lamp", "home/shine", "spec: Required value")),
			`error validating existing CRs against new CRD's schema for "lamps.example": error validating example/v1, Kind=Lamp "home/shine": updated validation is too restrictive: spec: Required value`,
		},
		{installed, "InstallComponentFailed", "~", fmt.Errorf(olmtext.CRDUpdateRefused, "lamps.example", errNo()).Error(), `error updating CRD "lamps.example": no`},
		{installed, "InstallComponentFailed", "~", olmtext.CRDVersionUnsupported("v2"), "CRD APIVersion from manifest not supported: v2"},
		{
			installed, "InstallComponentFailed", "~", olmtext.DependentOwners("lamp.v1"),
			"pre-existing CRD owners found for owned CRD(s) of dependent CSV lamp.v1",
		},
		{
			installed, "InstallComponentFailed", "~", olmtext.SeveralOwners([]string{"a", "b"}, "home", "lamps.example"),
			"Existing CSVs [a b] in namespace home all claim to own CRD lamps.example",
		},
		{installed, "InstallComponentFailed", "~", fmt.Errorf(olmtext.ManifestUnreadable, "shine", errNo()).Error(), "error parsing step manifest: shine: no"},
		{installed, "InstallComponentFailed", "~", fmt.Errorf(olmtext.SecretMissing, "pull", errNo()).Error(), "secret pull does not exist - no"},

		{csv, "RequirementsUnknown", "=", olmtext.RequirementsUnknown, "requirements not yet checked"},
		{csv, "RequirementsUnknown", "=", olmtext.GroupSupported, "InstallModes now support target namespaces"},
		{csv, "RequirementsUnknown", "=", olmtext.NoLongerConflicting, "OperatorGroup no longer intersecting with conflicting owner"},
		{csv, "RequirementsUnknown", "=", olmtext.StaticSupported, "static OperatorGroup and intersecting groups now support providedAPIs"},
		{csv, "RequirementsNotMet", "=", olmtext.RequirementsNotMet, "one or more requirements couldn't be found"},
		{csv, "RequirementsNotMet", "=", olmtext.StillNotMet, "requirements not met"},
		{csv, "RequirementsNotMet", "=", olmtext.NoLongerMet, "requirements no longer met"},
		{csv, "OperatorConditionNotUpgradeable", "=", olmtext.NotUpgradeable(olmtext.ReportedNotUpgradeable("busy")), "operator is not upgradeable: the operator is not upgradeable: busy"},
		{csv, "OperatorConditionNotUpgradeable", "=", olmtext.NotUpgradeable(olmtext.ReportOutdated("Upgradeable", "True")), `operator is not upgradeable: the operatorcondition status "Upgradeable"="True" is outdated`},
		{csv, "NeedsReinstall", "=", olmtext.DeploymentsInvalid, "calculated deployment install is bad"},
		{csv, "NeedsCertRotation", "=", olmtext.CertificatesDue, "CSV owns resources that require a cert refresh"},
		{csv, "NeedsCertRotation", "=", olmtext.CertificatesStillDue, "owned APIServices need cert refresh"},
		{csv, "DetectedClusterChange", "=", olmtext.ClusterChanged, "Cluster resources changed state"},
		{csv, "AllRequirementsMet", "=", olmtext.RequirementsMet, "all requirements found, attempting install"},
		{csv, "InstallSucceeded", "=", olmtext.Installing, "waiting for install components to report healthy"},
		{csv, "InstallSucceeded", "=", olmtext.Succeeded, "install strategy completed with no errors"},
		{csv, "InstallWaiting", "=", olmtext.APIServicesMissing, "apiServices not installed"},
		{csv, "InstallWaiting", "=", olmtext.WebhooksMissing, "webhooks not installed"},
		{csv, "InstallWaiting", "=", olmtext.InstallProblem(olmtext.DeploymentMissing("lamp")), "installing: missing deployment with name=lamp"},
		{csv, "InstallWaiting", "=", olmtext.DeploymentNotReady("lamp", olmtext.NotObserved("lamp")), `waiting for deployment lamp to become ready: waiting for spec update of deployment "lamp" to be observed...`},
		{csv, "InstallWaiting", "=", olmtext.OutdatedReplicas("lamp", 2), `deployment "lamp" waiting for 2 outdated replica(s) to be terminated`},
		{csv, "InstallWaiting", "=", olmtext.NotAvailable("lamp", "none up"), `deployment "lamp" not available: none up`},
		{csv, "InstallWaiting", "=", olmtext.NoAvailability("lamp"), `deployment "lamp" not available: missing condition "Available"`},
		{csv, "ComponentUnhealthy", "=", olmtext.DeploymentWithoutHash("lamp"), "deployment lamp doesn't have a spec hash, update it"},
		{csv, "ComponentUnhealthy", "=", olmtext.DeploymentChanged("a", "b"), "deployment changed old hash=a, new hash=b"},
		{csv, "ComponentUnhealthy", "=", olmtext.NoAnnotations, "no annotations found on deployment"},
		{csv, "ComponentUnhealthy", "=", olmtext.AnnotationMissing("mesh"), "annotations on deployment does not contain expected key: mesh"},
		{csv, "ComponentUnhealthy", "=", olmtext.AnnotationChanged("mesh", "on", "off"), "unexpected annotation on deployment. Expected mesh:on, found mesh:off"},
		{
			csv, "InstallCheckFailed", "=", olmtext.InstallFailed(olmtext.DeploymentTimedOut("lamp", olmtext.DeadlineExceeded("lamp"))),
			`install failed: deployment lamp not ready before timeout: deployment "lamp" exceeded its progress deadline`,
		},
		{csv, "InstallCheckFailed", "=", olmtext.InstallTimeout, "install timeout"},
		{csv, "InstallComponentFailed", "^", olmtext.StrategyFailed("no"), "install strategy failed: no"},
		{csv, "InstallComponentFailedNoRetry", "^", olmtext.AccountRefused("no"), "install strategy failed: install strategy failed: no"},
		{csv, "InvalidWebhookDescription", "~", olmtext.ConversionModes, "unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces"},
		{csv, "InvalidWebhookDescription", "~", olmtext.ConversionWithoutCRDs, "unable to manager conversion webhook: conversion webhook must have at least one CRD specified"},
		{csv, "InvalidWebhookDescription", "~", olmtext.CRDNotOwned("lamp.v1", "lamps.example"), "csv lamp.v1 does not own CRD lamps.example"},
		{csv, "InvalidWebhookDescription", "=", olmtext.RulesIncludeAll, "webhook rules cannot include all groups"},
		{csv, "InvalidWebhookDescription", "=", olmtext.RulesIncludeOLM, "webhook rules cannot include the OLM group"},
		{csv, "InvalidWebhookDescription", "=", olmtext.RulesIncludeWebhooks, "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources"},
		{csv, "InvalidWebhookDescription", "=", olmtext.WebhookNameRepeated, "CSV contains repeated WebhookDescription name"},
		{csv, "InvalidInstallStrategy", "^", olmtext.StrategyInvalid(olmtext.UnknownStrategy), "install strategy invalid: unrecognized install strategy"},
		{csv, "OwnerConflict", "=", olmtext.CRDConflict, "conflicting CRD owner in namespace"},
		{csv, "OwnerConflict", "=", olmtext.APIServiceConflict, "unable to adopt APIService"},
		{csv, "NoOperatorGroup", "=", olmtext.NoGroup, "csv in namespace with no operatorgroups"},
		{csv, "TooManyOperatorGroups", "=", olmtext.SeveralGroups, "csv created in namespace with multiple operatorgroups, can't pick one automatically"},
		{csv, "NoTargetNamespaces", "=", olmtext.NoTargetNamespaces, "no targetNamespaces are matched operatorgroups namespace selection"},
		{csv, "UnsupportedOperatorGroup", "=", supports("home"), "OwnNamespace InstallModeType not supported, cannot configure to watch own namespace"},
		{csv, "UnsupportedOperatorGroup", "=", supports(""), "AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces"},
		{csv, "UnsupportedOperatorGroup", "=", supports("a"), "SingleNamespace InstallModeType not supported, cannot configure to watch one namespace"},
		{csv, "UnsupportedOperatorGroup", "=", supports("a", "b"), "MultiNamespace InstallModeType not supported, cannot configure to watch 2 namespaces"},
		{csv, "InterOperatorGroupOwnerConflict", "=", olmtext.APIsTaken, "intersecting operatorgroups provide the same apis"},
		{csv, "CannotModifyStaticOperatorGroupProvidedAPIs", "=", olmtext.StaticAPIs, "static provided api operatorgroup cannot be modified by these apis"},
		{csv, "BeingReplaced", "=", olmtext.BeingReplaced("lamp.v2"), "being replaced by csv: lamp.v2"},
		{csv, "BeingReplaced", "=", olmtext.FailForward("lamp.v2"), "Fail Forward is enabled, allowing Failed csv to be replaced by csv: lamp.v2"},
		{csv, "Replaced", "=", olmtext.Replaced, "has been replaced by a newer ClusterServiceVersion that has successfully installed."},
		{csv, "Copied", "=", olmtext.Copied("home"), "The operator is running in home but is managing this namespace"},

		{requirement, "Present", "=", olmtext.MinimumMet("1.20.0", "v1.35.0"), "CSV minKubeVersion (1.20.0) less than server version (v1.35.0)"},
		{requirement, "PresentNotSatisfied", "=", olmtext.MinimumNotMet("1.99.0", "1.35.0"), "CSV version requirement not met: minKubeVersion (1.99.0) > server version (1.35.0)"},
		{requirement, "PresentNotSatisfied", "=", olmtext.ServerVersionUnparsable, "Server version parsing error"},
		{requirement, "PresentNotSatisfied", "=", olmtext.MinimumUnparsable, "CSV version parsing error"},
		{requirement, "NotPresent", "=", olmtext.CRDMissing, "CRD is not present"},
		{requirement, "PresentNotSatisfied", "=", olmtext.CRDOfOthers("a, b"), "CRD installed alongside other CSV(s): a, b"},
		{requirement, "NotPresent", "=", olmtext.CRDVersionNotServed, "CRD version not served"},
		{requirement, "PresentNotAvailable", "=", olmtext.CRDNotEstablished, "CRD is present but the Established condition is False (not available)"},
		{requirement, "Present", "=", olmtext.CRDPresent, "CRD is present and Established condition is true"},
		{requirement, "Present", "=", olmtext.NativeAPIPresent, "Native API exists"},
		{requirement, "NotPresent", "=", olmtext.NativeAPIMissing, "Native API does not exist"},
		{requirement, "NotPresent", "=", olmtext.ServiceAccountMissing, "Service account does not exist"},
		{requirement, "PresentNotSatisfied", "=", olmtext.ServiceAccountOwned, "Service account is owned by another ClusterServiceVersion"},
		{requirement, "PresentNotSatisfied", "=", olmtext.ServiceAccountLacksRule, "Policy rule not satisfied for service account"},
		{requirement, "Satisfied", "^", olmtext.NamespacedRule, "namespaced rule:"},
		{requirement, "Satisfied", "^", olmtext.ClusterRule, "cluster rule:"},

		{catalog, "SpecInvalidError", "=", olmtext.ConfigMapUnset("internal"), "configmap name unset: must be set for sourcetype: internal"},
		{catalog, "SpecInvalidError", "=", olmtext.AddressUnset, "image and address unset: at least one must be set for sourcetype: grpc"},
		{catalog, "SpecInvalidError", "=", olmtext.UnknownSourceType("odd"), "unknown sourcetype: odd"},
		{catalog, "ConfigMapError", "^", fmt.Errorf(olmtext.CatalogConfigMapFailed, "shop", errNo()).Error(), "failed to get catalog config map shop: no"},
		{catalog, "ConfigMapError", "^", fmt.Errorf(olmtext.ConfigMapOwnerFailed, errNo()).Error(), "unable to write owner onto catalog source configmap - no"},
		{catalog, "RegistryServerError", "^", olmtext.EnsureServerFailed(errNo()), "couldn't ensure registry server - no"},
		{
			catalog, "InvalidIntervalError", "=", olmtext.IntervalInvalid(errNo()),
			"error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: no",
		},
		{catalog, "InvalidIntervalError", "=", olmtext.IntervalEmpty, "empty polling interval; cannot requeue registry server sync without a provided polling interval"},
		{template, "AllTemplatesResolved", "=", olmtext.TemplateResolved, "catalog image reference was successfully resolved"},
		{template, "UnableToResolve", "=", olmtext.TemplateUnresolved(nil, true), "cannot construct catalog image reference, because one or more template(s) has improper syntax"},
		{template, "UnableToResolve", "=", olmtext.TemplateUnresolved([]string{"{a}", "{b}"}, false), `cannot construct catalog image reference, because variable(s) "{a}", "{b}" could not be resolved`},
		{
			template, "UnableToResolve", "=", olmtext.TemplateUnresolved([]string{"{a}"}, true),
			`cannot construct catalog image reference, because variable(s) "{a}" could not be resolved and one or more template(s) has improper syntax`,
		},
		{"OperatorGroup MultipleOperatorGroup", "MultipleOperatorGroupsFound", "=", olmtext.MultipleGroups, "Multiple OperatorGroup found in the same namespace"},
		{"OperatorGroup OperatorGroupServiceAccount", "ServiceAccountNotFound", "=", olmtext.GroupAccountMissing("bob"), "ServiceAccount bob not found"},
		{copies, "CopiedCSVsEnabled", "=", olmtext.CopiesPresent, "Copied CSVs are enabled and present across the cluster"},
		{copies, "CopiedCSVsEnabled", "=", olmtext.CopiesMissing, "Copied CSVs are enabled and at least one copied CSVs is missing"},
		{copies, "CopiedCSVsDisabled", "=", olmtext.CopiesAbsent, "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode"},
		{copies, "CopiedCSVsDisabled", "=", olmtext.CopiesNotYetGone, "Copied CSVs are disabled and at least one unexpected copied CSV was found for an operator installed in AllNamespace mode"},
		{"Event on a ClusterServiceVersion", "DisabledCopiedCSVs", "=", olmtext.CopyingDisabled("home/lamp.v1"), "CSV copying disabled for home/lamp.v1"},
		{
			"Event on an InstallPlan", "AppliedWithWarnings", "=", olmtext.AppliedWithWarnings("lamp.v1", "Role", "dim", []string{"a", "b"}, 2),
			`2 warning(s) generated during installation of operator "lamp.v1" (Role "dim"): a, b`,
		},
		{
			"Event on an InstallPlan", "AppliedWithWarnings", "=", olmtext.AppliedWithWarnings("", "Role", "dim", []string{"a"}, 1),
			`1 warning(s) generated during operator installation (Role "dim"): a`,
		},
		{
			"Event on an InstallPlan", "CRDValidation", "^", olmtext.ConversionTrusted("lamps.example", "no"),
			"Validation of existing CRs against the new CRD's schema failed, but a webhook conversion strategy was specified in the new CRD.\nCRD: \"lamps.example\"\nValidation Error: no\n",
		},
	}
}

// TestSentences compares the sentences of the supervisor with those of OLM. The supervisor has no other copy of them.
func TestSentences(t *testing.T) {
	t.Parallel()
	rows := table()
	if len(rows) < 80 {
		t.Errorf("the table has %d rows, want at least 80", len(rows))
	}
	for _, r := range rows {
		if r.got != r.want {
			t.Errorf("%s (%s):\ngot  %q\nwant %q", r.field, r.reason, r.got, r.want)
		}
		if !slices.Contains([]string{"=", "^", "~"}, r.comparison) || r.field == "" {
			t.Errorf("row %+v has no field or no kind of comparison", r)
		}
	}
}
