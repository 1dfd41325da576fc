package compat_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
)

type subscriptionChange = func(*operatorsv1alpha1.Subscription)

// subscriptionCase is a Subscription to the package crank of the catalog shop, and a condition that it gets.
type subscriptionCase struct {
	id     string
	pkg    func(c *compattest.Cluster) fakecatalog.Package
	change subscriptionChange
	// after acts on the existing Subscription; it may be nil.
	after   func(c *compattest.Cluster, shop *fakecatalog.Server, sub *operatorsv1alpha1.Subscription)
	kind    operatorsv1alpha1.SubscriptionConditionType
	status  corev1.ConditionStatus
	reason  string
	wording func(c *compattest.Cluster) wording
}

func anyway(t wording) func(*compattest.Cluster) wording {
	return func(*compattest.Cluster) wording { return t }
}

func crank(change ...csvChange) func(c *compattest.Cluster) fakecatalog.Package {
	return func(c *compattest.Cluster) fakecatalog.Package {
		return fakecatalog.Simple("crank", fakecatalog.Entry{Name: "crank.v1", Version: "1.0.0", Objects: []string{c.Manifest(c.CSV("crank.v1", change...))}})
	}
}

// onlyPlanSays compares a text with the message of the condition Installed of the only plan.
func onlyPlanSays(c *compattest.Cluster) wording {
	return func(got string) string {
		var plans operatorsv1alpha1.InstallPlanList
		if err := c.List(background(c), &plans, client.InNamespace(c.Namespace)); err != nil || len(plans.Items) != 1 {
			return fmt.Sprintf("%d plans, error %v", len(plans.Items), err)
		}
		want := plans.Items[0].Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Message
		return bothOf(exactly(want), containing("api-server resource not found installing ConsoleCLIDownload crank: "))(got)
	}
}

func withManualApproval(sub *operatorsv1alpha1.Subscription) {
	sub.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
}

// TestSubscriptionSentences checks the messages of conditions of Subscriptions.
func TestSubscriptionSentences(t *testing.T) {
	t.Parallel()
	for _, tc := range []subscriptionCase{
		{
			id: "F-Subscription-CatalogsHealthy", kind: operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, status: "False", reason: "AllCatalogSourcesHealthy",
			wording: anyway(exactly("all available catalogsources are healthy")),
		},
		{
			id: "F-Subscription-CatalogMissing", change: func(sub *operatorsv1alpha1.Subscription) { sub.Spec.CatalogSource = "gone" },
			kind: operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, status: "True", reason: "UnhealthyCatalogSourceFound",
			wording: func(c *compattest.Cluster) wording {
				return exactly("targeted catalogsource " + c.Namespace + "/gone missing")
			},
		},
		{
			id: "F-Subscription-RequiresApproval", change: withManualApproval, kind: operatorsv1alpha1.SubscriptionInstallPlanPending, status: "True", reason: "RequiresApproval",
			wording: anyway(exactly("")),
		},
		{
			id: "F-Subscription-InstallPlanMissing", after: func(c *compattest.Cluster, _ *fakecatalog.Server, sub *operatorsv1alpha1.Subscription) {
				c.Eventually(compattest.Patience, isInstalled(c, sub, "crank.v1"))
				deleteObject(c, planOfSubscription(sub))
			}, kind: operatorsv1alpha1.SubscriptionInstallPlanMissing, status: "True", reason: "ReferencedInstallPlanNotFound",
			wording: anyway(exactly("")),
		},
		{
			id: "F-Subscription-InstallPlanFailed", pkg: unservedKind, kind: operatorsv1alpha1.SubscriptionInstallPlanFailed, status: "True", reason: "InstallComponentFailed",
			wording: onlyPlanSays,
		},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkSubscription(c, tc) })
	}
	for _, tc := range unresolvedSubscriptions() {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkSubscription(c, tc) })
	}
}

// unresolvedSubscriptions returns the cases of Subscriptions that cannot be resolved.
func unresolvedSubscriptions() []subscriptionCase {
	const unresolved = operatorsv1alpha1.SubscriptionResolutionFailed
	return []subscriptionCase{
		{
			id: "F-Subscription-NoCatalog", change: func(sub *operatorsv1alpha1.Subscription) { sub.Spec.CatalogSource = "gone" },
			kind: unresolved, status: "True", reason: "ConstraintsNotSatisfiable", wording: func(c *compattest.Cluster) wording {
				return bothOf(begins("constraints not satisfiable: "), containing(fmt.Sprintf("no operators found from catalog gone in namespace %s referenced by subscription crank", c.Namespace), "subscription crank exists"))
			},
		},
		{
			id: "F-Subscription-NoPackage", change: func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Package = "pedal" },
			kind: unresolved, status: "True", reason: "ConstraintsNotSatisfiable",
			wording: anyway(bothOf(begins("constraints not satisfiable: "), containing("no operators found in package pedal in the catalog referenced by subscription crank", "subscription crank exists"))),
		},
		{
			id: "F-Subscription-NoChannel", change: func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel = "fast" },
			kind: unresolved, status: "True", reason: "ConstraintsNotSatisfiable",
			wording: anyway(bothOf(begins("constraints not satisfiable: "), containing("no operators found in channel fast of package crank in the catalog referenced by subscription crank", "subscription crank exists"))),
		},
		{
			id: "F-Subscription-NoStartingCSV", change: func(sub *operatorsv1alpha1.Subscription) {
				sub.Spec.Channel, sub.Spec.StartingCSV = "stable", "crank.v9"
			},
			kind: unresolved, status: "True", reason: "ConstraintsNotSatisfiable",
			wording: anyway(bothOf(begins("constraints not satisfiable: "), containing("no operators found with name crank.v9 in channel stable of package crank in the catalog referenced by subscription crank", "subscription crank exists"))),
		},
		{
			id: "F-Subscription-NoDependency", pkg: func(c *compattest.Cluster) fakecatalog.Package {
				p := crank()(c)
				p.Channels[0].Entries[0].Properties = append(p.Channels[0].Entries[0].Properties, packageRequired("pedal", ">=1.0.0"))
				return p
			}, kind: unresolved, status: "True", reason: "ConstraintsNotSatisfiable", wording: func(c *compattest.Cluster) wording {
				return bothOf(begins("constraints not satisfiable: "), containing(
					"bundle crank.v1 requires an operator with package: pedal and with version in range: >=1.0.0",
					fmt.Sprintf("subscription crank requires shop/%s/stable/crank.v1", c.Namespace), "subscription crank exists"))
			},
		},
		{
			id: "F-Subscription-CatalogAway", after: nil, change: func(sub *operatorsv1alpha1.Subscription) { sub.Spec.CatalogSource = "away" },
			kind: unresolved, status: "True", reason: "ErrorPreventedResolution", wording: func(c *compattest.Cluster) wording {
				key := c.Namespace + "/away"
				return begins("error using catalogsource " + key + ": failed to list bundles: rpc error: code = Unavailable desc = ")
			},
		},
		{
			id: "F-Subscription-NoChannelHeads", pkg: func(c *compattest.Cluster) fakecatalog.Package {
				return fakecatalog.Simple("crank",
					fakecatalog.Entry{Name: "crank.v1", Version: "1.0.0", Replaces: "crank.v2", Objects: []string{c.Manifest(c.CSV("crank.v1"))}},
					fakecatalog.Entry{Name: "crank.v2", Version: "2.0.0", Replaces: "crank.v1", Objects: []string{c.Manifest(c.CSV("crank.v2"))}})
			}, kind: unresolved, status: "True", reason: "ConstraintsNotSatisfiable",
			wording: anyway(containing(`no channel heads (entries not replaced by another entry) found in channel "stable" of package "crank"`)),
		},
	}
}

// TestDeprecationSentences checks the messages about deprecations.
func TestDeprecationSentences(t *testing.T) {
	t.Parallel()
	for _, tc := range []subscriptionCase{
		{
			id: "F-Subscription-PackageDeprecated", pkg: deprecated, change: onStable, kind: operatorsv1alpha1.SubscriptionPackageDeprecated, status: "True",
			wording: anyway(exactly("olm.package/crank: the package is old")),
		},
		{
			id: "F-Subscription-ChannelDeprecated", pkg: deprecated, change: onStable, kind: operatorsv1alpha1.SubscriptionChannelDeprecated, status: "True",
			wording: anyway(exactly("olm.channel/stable: the channel is old")),
		},
		{
			id: "F-Subscription-BundleDeprecated", pkg: deprecated, change: onStable, kind: operatorsv1alpha1.SubscriptionBundleDeprecated, status: "True",
			wording: anyway(exactly("olm.bundle/crank.v1: the bundle is old")),
		},
		{
			id: "F6", pkg: deprecated, change: onStable, kind: operatorsv1alpha1.SubscriptionDeprecated, status: "True",
			wording: anyway(exactly("olm.package/crank: the package is old; olm.channel/stable: the channel is old; olm.bundle/crank.v1: the bundle is old")),
		},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkSubscription(c, tc) })
	}
}

// TestSubscriptionStates checks Subscriptions with manual approval, and whose version fails or cannot be pulled.
func TestSubscriptionStates(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "F7", func(t *testing.T, c *compattest.Cluster) {
		t.Helper()
		p := crank()(c)
		p.Channels[0].Entries[0].Deprecation = "the bundle is old"
		c.Catalog("shop", p)
		sub := c.Subscribe("shop", "crank", withManualApproval, onStable)
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionInstallPlanPending, "True", "RequiresApproval", exactly(""))
		c.AtRest(restTime, sub)
		absentConditions(c, sub, deprecations()...)
	})
	compattest.Check(t, "F8", func(_ *testing.T, c *compattest.Cluster) {
		c.Catalog("shop", crank()(c))
		sub := c.Subscribe("shop", "crank", withManualApproval)
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionInstallPlanPending, "True", "RequiresApproval", exactly(""))
		c.Eventually(compattest.Patience, func() string {
			return eventAbout(c, c.Namespace, sub.UID, sub.Name, corev1.EventTypeNormal, "RequiresApproval", containing("spec.approved"))
		})
	})
	noImage := func(c *compattest.Cluster, version string) fakecatalog.Entry {
		return fakecatalog.Entry{Name: "crank.v" + version, Version: version + ".0.0", Image: "127.0.0.1:9/" + c.Namespace + ":" + version}
	}
	compattest.Check(t, "F-Subscription-BundleUnpackFailed", func(t *testing.T, c *compattest.Cluster) {
		t.Helper()
		c.Catalog("shop", fakecatalog.Simple("crank", noImage(c, "1")))
		sub := c.Subscribe("shop", "crank")
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "True", "BundleUnpackFailed", begins("Bundle unpacking failed - "))
		if sub.Status.State != operatorsv1alpha1.SubscriptionStateFailed || sub.Status.CurrentCSV != "" {
			t.Errorf("the status is %s", c.Manifest(sub.Status))
		}
	})
	compattest.Check(t, "F-Subscription-UpdateUnpackFailed", func(t *testing.T, c *compattest.Cluster) {
		t.Helper()
		shop := c.Catalog("shop", crank()(c))
		sub := c.Subscribe("shop", "crank")
		c.Eventually(compattest.Patience, isInstalled(c, sub, "crank.v1"))
		p := crank()(c)
		next := noImage(c, "2")
		next.Replaces = "crank.v1"
		p.Channels[0].Entries = append(p.Channels[0].Entries, next)
		shop.Serve(p)
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "True", "BundleUnpackFailed", begins("Bundle unpacking failed - "))
		if sub.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest || sub.Status.CurrentCSV != "crank.v1" {
			t.Errorf("the status is %s", c.Manifest(sub.Status))
		}
	})
	compattest.Check(t, "F-Subscription-VersionFailed", func(_ *testing.T, c *compattest.Cluster) {
		c.Catalog("shop", crank(supporting("AllNamespaces"))(c))
		sub := c.Subscribe("shop", "crank")
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(sub); left != "" {
				return left
			}
			if sub.Status.State != operatorsv1alpha1.SubscriptionStateFailed || sub.Status.CurrentCSV != "crank.v1" || sub.Status.InstalledCSV != "" {
				return "the status is " + c.Manifest(sub.Status)
			}
			return ""
		})
	})
	compattest.Check(t, "F-Namespace-ResolutionFailed", func(_ *testing.T, c *compattest.Cluster) {
		c.Catalog("shop", crank()(c))
		sub := c.Subscribe("shop", "crank", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.Package = "pedal" })
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionResolutionFailed, "True", "ConstraintsNotSatisfiable", begins("constraints not satisfiable: "))
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
		if left := c.Read(ns); left != "" {
			panic(left)
		}
		ns.Namespace = ""
		c.Eventually(compattest.Patience, func() string {
			return eventAbout(c, metav1.NamespaceDefault, ns.UID, c.Namespace, corev1.EventTypeWarning, "ResolutionFailed",
				exactly(sub.Status.GetCondition(operatorsv1alpha1.SubscriptionResolutionFailed).Message))
		})
	})
}

func checkSubscription(c *compattest.Cluster, tc subscriptionCase) {
	if tc.pkg == nil {
		tc.pkg = crank()
	}
	shop := c.Catalog("shop", tc.pkg(c))
	if tc.id == "F-Subscription-CatalogAway" {
		c.Make(&operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "away"},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: "127.0.0.1:9"},
		})
	}
	sub := c.Subscribe("shop", "crank", func(sub *operatorsv1alpha1.Subscription) {
		if tc.change != nil {
			tc.change(sub)
		}
	})
	if tc.after != nil {
		tc.after(c, shop, sub)
	}
	waitForCondition(c, sub, tc.kind, tc.status, tc.reason, tc.wording(c))
}

func waitForCondition(c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, kind operatorsv1alpha1.SubscriptionConditionType, status corev1.ConditionStatus, reason string, check wording) {
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		got := sub.Status.GetCondition(kind)
		if got.Status != status || got.Reason != reason {
			return fmt.Sprintf("%s is %s (%s): %q; all: %s", kind, got.Status, got.Reason, got.Message, c.Manifest(sub.Status))
		}
		return check(got.Message)
	})
}

func bothOf(a, b wording) wording {
	return func(got string) string {
		if left := a(got); left != "" {
			return left
		}
		return b(got)
	}
}

func isInstalled(c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, csv string) func() string {
	return func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		if sub.Status.InstalledCSV != csv || sub.Status.InstallPlanRef == nil || sub.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
			return fmt.Sprintf("installedCSV is %q, the state %s", sub.Status.InstalledCSV, sub.Status.State)
		}
		return ""
	}
}

func planOfSubscription(sub *operatorsv1alpha1.Subscription) *operatorsv1alpha1.InstallPlan {
	return &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: sub.Namespace, Name: sub.Status.InstallPlanRef.Name}}
}

func onStable(sub *operatorsv1alpha1.Subscription) { sub.Spec.Channel = "stable" }

func deprecated(c *compattest.Cluster) fakecatalog.Package {
	p := crank()(c)
	p.Deprecation, p.Channels[0].Deprecation, p.Channels[0].Entries[0].Deprecation = "the package is old", "the channel is old", "the bundle is old"
	return p
}

// unservedKind returns a package whose bundle has an object of a kind that the cluster does not serve.
func unservedKind(c *compattest.Cluster) fakecatalog.Package {
	p := crank()(c)
	p.Channels[0].Entries[0].Objects = append(p.Channels[0].Entries[0].Objects,
		`{"apiVersion":"console.openshift.io/v1","kind":"ConsoleCLIDownload","metadata":{"name":"crank"},"spec":{}}`)
	return p
}

// eventAbout returns an empty text if an Event with a note exists.
func eventAbout(c *compattest.Cluster, namespace string, uid any, name, kind, reason string, check wording) string {
	list := &corev1.EventList{}
	if err := c.List(background(c), list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.name": name}); err != nil {
		return err.Error()
	}
	var seen []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.Type == kind && e.Reason == reason && check(e.Message) == "" {
			return ""
		}
		seen = append(seen, fmt.Sprintf("%s %s: %q", e.Type, e.Reason, e.Message))
	}
	return fmt.Sprintf("the Events of %s (%v) are\n%s", name, uid, strings.Join(seen, "\n"))
}

// planCase is an InstallPlan that a client writes, and what its status becomes.
type planCase struct {
	id     string
	before func(*compattest.Cluster, *operatorsv1alpha1.ClusterServiceVersion)
	// names are the versions in the spec of the plan; nil for crank.v1.
	names []string
	steps func(c *compattest.Cluster) []*operatorsv1alpha1.Step
	phase operatorsv1alpha1.InstallPlanPhase
	// message checks status.message, and condition the condition Installed.
	message   wording
	status    corev1.ConditionStatus
	reason    operatorsv1alpha1.InstallPlanConditionReason
	condition wording
}

// TestInstallPlanSentences checks the messages of InstallPlans.
func TestInstallPlanSentences(t *testing.T) {
	t.Parallel()
	const installing, failed, complete = operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.InstallPlanPhaseFailed, operatorsv1alpha1.InstallPlanPhaseComplete
	gone := func(what string) wording {
		return containing("api-server resource not found installing " + what + " not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.")
	}
	missing := gone("ConsoleCLIDownload crank: GroupVersionKind console.openshift.io/v1, Kind=ConsoleCLIDownload")
	for _, tc := range []planCase{
		{id: "F-InstallPlan-Complete", steps: configMapStep, phase: complete, message: exactly(""), status: "True", condition: exactly("")},
		{
			id: "F-InstallPlan-NoGroup", before: deleteGroup, steps: configMapStep, phase: installing, message: exactly(""),
			status: "False", reason: "InstallCheckFailed", condition: exactly("no operator group found that is managing this namespace"),
		},
		{
			id: "F-InstallPlan-SeveralGroups", before: secondGroup, steps: configMapStep, phase: installing, message: exactly(""),
			status: "False", reason: "InstallCheckFailed", condition: exactly("more than one operator group(s) are managing this namespace count=2"),
		},
		{id: "F-InstallPlan-APINotServed", steps: downloadStep, phase: failed, message: missing, status: "False", reason: "InstallComponentFailed", condition: missing},
		{
			id: "F-InstallPlan-Retrying", steps: downloadStep, phase: installing, message: bothOf(begins("retrying execution due to error: "), missing),
		},
		{
			id: "F-InstallPlan-StoredVersion", before: storedVersion, steps: crdStep("gears.stored.example", "v2"), phase: installing,
			message: containing(`risk of data loss updating "gears.stored.example": new CRD removes version v1 that is listed as a stored version on the existing CRD`),
		},
		{
			id: "F-InstallPlan-ObjectInvalid", before: invalidObject, steps: strictStep("gears.strict.example"), phase: installing,
			message: matches(`retrying execution due to error: .*error validating existing CRs against new CRD's schema for "gears\.strict\.example": ` +
				`error validating strict\.example/v1, Kind=Gear "compat-[a-z0-9-]+/gear": updated validation is too restrictive: .+`),
		},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkPlan(c, tc) })
	}
}

func checkPlan(c *compattest.Cluster, tc planCase) {
	if tc.before != nil {
		tc.before(c, nil)
	}
	if tc.names == nil {
		tc.names = []string{"crank.v1"}
	}
	p := c.Plan("install-crank", tc.names, tc.steps(c)...)
	c.Eventually(compattest.Patience+30*time.Second, func() string {
		if left := c.Read(p); left != "" {
			return left
		}
		left := tc.message(p.Status.Message)
		if p.Status.Phase != tc.phase {
			left = "the phase is not " + string(tc.phase)
		}
		if tc.condition != nil && left == "" {
			got := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
			left = tc.condition(got.Message)
			if got.Status != tc.status || got.Reason != tc.reason {
				left = "the condition differs"
			}
			if n := len(p.Status.Conditions); n == 0 || p.Status.Conditions[n-1].Type != operatorsv1alpha1.InstallPlanInstalled {
				left = "the last condition is not Installed"
			}
		}
		if left != "" {
			left += ": " + c.Manifest(p.Status.Conditions) + " " + string(p.Status.Phase) + " " + p.Status.Message
		}
		return left
	})
}

func planStep(kind, replaceGroup, version, name, manifest string) *operatorsv1alpha1.Step {
	return &operatorsv1alpha1.Step{
		Resolving: "crank.v1", Status: operatorsv1alpha1.StepStatusUnknown,
		Resource: operatorsv1alpha1.StepResource{Group: replaceGroup, Version: version, Kind: kind, Name: name, Manifest: manifest},
	}
}

// csvStep is the first step of each plan: other objects need an owner.
func csvStep(c *compattest.Cluster) *operatorsv1alpha1.Step {
	return planStep("ClusterServiceVersion", "operators.coreos.com", "v1alpha1", "crank.v1", c.Manifest(c.CSV("crank.v1")))
}

func configMapStep(c *compattest.Cluster) []*operatorsv1alpha1.Step {
	return []*operatorsv1alpha1.Step{csvStep(c), planStep("ConfigMap", "", "v1", "crank", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"crank"}}`)}
}

func downloadStep(c *compattest.Cluster) []*operatorsv1alpha1.Step {
	return []*operatorsv1alpha1.Step{csvStep(c), planStep("ConsoleCLIDownload", "console.openshift.io", "v1", "crank",
		`{"apiVersion":"console.openshift.io/v1","kind":"ConsoleCLIDownload","metadata":{"name":"crank"},"spec":{}}`)}
}

func crdStep(name string, versions ...string) func(c *compattest.Cluster) []*operatorsv1alpha1.Step {
	return func(c *compattest.Cluster) []*operatorsv1alpha1.Step {
		return []*operatorsv1alpha1.Step{csvStep(c), planStep("CustomResourceDefinition", "apiextensions.k8s.io", "v1", name, c.Manifest(crdNamed(name, "Gear", versions...)))}
	}
}

func strictStep(name string) func(c *compattest.Cluster) []*operatorsv1alpha1.Step {
	return func(c *compattest.Cluster) []*operatorsv1alpha1.Step {
		crd := crdNamed(name, "Gear", "v1")
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Required = []string{"spec"}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object"}}
		return []*operatorsv1alpha1.Step{csvStep(c), planStep("CustomResourceDefinition", "apiextensions.k8s.io", "v1", name, c.Manifest(crd))}
	}
}

func storedVersion(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	createAsOLM(c, crdNamed("gears.stored.example", "Gear", "v1"))
}

// createAsOLM creates a definition with the field manager of OLM. The supervisor does not change definitions of others.
func createAsOLM(c *compattest.Cluster, crd client.Object) {
	c.Eventually(compattest.Patience, func() string {
		if err := c.Create(background(c), crd, client.FieldOwner("catalog")); err != nil {
			return err.Error()
		}
		return ""
	})
}

func invalidObject(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
	createAsOLM(c, crdNamed("gears.strict.example", "Gear", "v1"))
	c.Eventually(compattest.Patience, func() string {
		if err := c.Create(background(c), anObject("strict.example/v1", "Gear", c.Namespace, "gear")); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestCatalogSentences checks the messages of CatalogSources.
func TestCatalogSentences(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		id      string
		spec    operatorsv1alpha1.CatalogSourceSpec
		reason  operatorsv1alpha1.ConditionReason
		wording wording
	}{
		{"F-CatalogSource-ConfigMapUnset", operatorsv1alpha1.CatalogSourceSpec{SourceType: "configmap"}, "SpecInvalidError", exactly("configmap name unset: must be set for sourcetype: configmap")},
		{"F-CatalogSource-InternalUnset", operatorsv1alpha1.CatalogSourceSpec{SourceType: "internal"}, "SpecInvalidError", exactly("configmap name unset: must be set for sourcetype: internal")},
		{"F-CatalogSource-AddressUnset", operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc"}, "SpecInvalidError", exactly("image and address unset: at least one must be set for sourcetype: grpc")},
		{"F-CatalogSource-UnknownType", operatorsv1alpha1.CatalogSourceSpec{SourceType: "odd"}, "SpecInvalidError", exactly("unknown sourcetype: odd")},
		{"F-CatalogSource-ConfigMapMissing", operatorsv1alpha1.CatalogSourceSpec{SourceType: "configmap", ConfigMap: "gone"}, "ConfigMapError", begins("failed to get catalog config map gone: ")},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) {
			source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shop"}, Spec: tc.spec}
			c.Make(source)
			c.Eventually(compattest.Patience, func() string {
				if left := c.Read(source); left != "" {
					return left
				}
				if source.Status.Reason != tc.reason {
					return fmt.Sprintf("the status is %s: %s", source.Status.Reason, source.Status.Message)
				}
				return tc.wording(source.Status.Message)
			})
		})
	}
	for _, tc := range []struct {
		id, template, kind string
		status             metav1.ConditionStatus
		reason             string
		wording            wording
	}{
		{"F-CatalogSource-ResolvedImage", "registry.example/shop:{kube_major_version}", "ResolvedImage", "True", "AllTemplatesResolved", exactly("registry.example/shop:1")},
		{"F-CatalogSource-TemplateResolved", "registry.example/shop:{kube_major_version}", "TemplatesHaveResolved", "True", "AllTemplatesResolved", exactly("catalog image reference was successfully resolved")},
		{"F-CatalogSource-TemplateSyntax", "registry.example/shop:{kube_majr_version}", "TemplatesHaveResolved", "False", "UnableToResolve", exactly("cannot construct catalog image reference, because one or more template(s) has improper syntax")},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) {
			source := &operatorsv1alpha1.CatalogSource{
				ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shop", Annotations: map[string]string{"olm.catalogImageTemplate": tc.template}},
				Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "registry.example/shop:1"},
			}
			c.Make(source)
			c.Eventually(compattest.Patience, func() string {
				if left := c.Read(source); left != "" {
					return left
				}
				got := apimeta.FindStatusCondition(source.Status.Conditions, tc.kind)
				if got == nil || got.Status != tc.status || got.Reason != tc.reason {
					return "the conditions are " + c.Manifest(source.Status.Conditions)
				}
				return tc.wording(got.Message)
			})
		})
	}
}

// TestGroupSentences checks the messages of OperatorGroups.
func TestGroupSentences(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		id, kind, reason string
		before           func(*compattest.Cluster)
		wording          wording
	}{
		{"F-OperatorGroup-Multiple", "MultipleOperatorGroup", "MultipleOperatorGroupsFound", func(c *compattest.Cluster) { secondGroup(c, nil) }, exactly("Multiple OperatorGroup found in the same namespace")},
		{"F-OperatorGroup-AccountMissing", "OperatorGroupServiceAccount", "ServiceAccountNotFound", func(c *compattest.Cluster) {
			changeObject(c, ownGroup(c), map[string]any{"spec": map[string]any{"serviceAccountName": "gone"}})
		}, exactly("ServiceAccount gone not found")},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) {
			tc.before(c)
			names := []string{ownGroup(c).Name}
			if tc.kind == "MultipleOperatorGroup" {
				names = append(names, "second")
			}
			for _, name := range names {
				g := ownGroup(c)
				g.Name = name
				c.Eventually(compattest.Patience, func() string {
					if left := c.Read(g); left != "" {
						return left
					}
					got := apimeta.FindStatusCondition(g.Status.Conditions, tc.kind)
					if got == nil || got.Status != metav1.ConditionTrue || got.Reason != tc.reason {
						return "the conditions are " + c.Manifest(g.Status.Conditions)
					}
					return tc.wording(got.Message)
				})
			}
		})
	}
}

// TestSentenceEvents checks the notes of Events, and what F3, F4 and F9 to F11 require of them.
func TestSentenceEvents(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]struct {
		change       csvChange
		kind, reason string
		wording      wording
	}{
		"F-Event-RequirementsUnknown": {nil, "Normal", "RequirementsUnknown", exactly("requirements not yet checked")},
		"F-Event-RequirementsNotMet":  {requiring("gears.missing.example"), "Normal", "RequirementsNotMet", exactly("one or more requirements couldn't be found")},
		"F9":                          {nil, "Normal", "InstallSucceeded", exactly("install strategy completed with no errors")},
		"F10":                         {admissionWebhook(webhookRule("*", "things")), "Warning", "InvalidWebhookDescription", exactly("webhook rules cannot include all groups")},
		"F10-OLMGroup":                {admissionWebhook(webhookRule("operators.coreos.com", "things")), "Warning", "InvalidWebhookDescription", exactly("webhook rules cannot include the OLM group")},
		"F10-Configurations": {
			admissionWebhook(webhookRule("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")), "Warning", "InvalidWebhookDescription",
			exactly("webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources"),
		},
	} {
		compattest.Check(t, id, func(_ *testing.T, c *compattest.Cluster) {
			csv := c.CSV("crank.v1")
			if want.change != nil {
				want.change(csv)
			}
			c.Make(csv)
			c.Eventually(compattest.Patience, func() string {
				return eventAbout(c, c.Namespace, csv.UID, csv.Name, want.kind, want.reason, want.wording)
			})
		})
	}
	compattest.Check(t, "F4", func(t *testing.T, c *compattest.Cluster) {
		t.Helper()
		csv := c.CSV("crank.v1", requiring("gears.first.example"), func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			second := csv.Spec.CustomResourceDefinitions.Required[0]
			second.Name = "gears.second.example"
			csv.Spec.CustomResourceDefinitions.Required = append(csv.Spec.CustomResourceDefinitions.Required, second)
		})
		c.Make(csv)
		lacks := func(names ...string) func() string {
			return func() string {
				if left := c.Read(csv); left != "" {
					return left
				}
				var missing []string
				for _, r := range csv.Status.RequirementStatus {
					if r.Kind == "CustomResourceDefinition" && r.Status == operatorsv1alpha1.RequirementStatusReasonNotPresent {
						missing = append(missing, r.Name)
					}
				}
				if !slices.Equal(missing, names) || csv.Status.Message != "one or more requirements couldn't be found" {
					return fmt.Sprintf("%q: missing %q", csv.Status.Message, missing)
				}
				return ""
			}
		}
		c.Eventually(compattest.Patience, lacks("gears.first.example", "gears.second.example"))
		c.Make(crdNamed("gears.first.example", "Gear", "v1"))
		c.Eventually(compattest.Patience, lacks("gears.second.example"))
		count := 0
		for _, e := range c.Events(csv) {
			if e.Reason == "RequirementsNotMet" {
				count += max(1, int(e.Count))
			}
		}
		if count != 1 {
			t.Errorf("there are %d Events about the requirements", count)
		}
	})
}

// TestRestingCauses checks that nothing is written while a cause stays.
func TestRestingCauses(t *testing.T) {
	t.Parallel()
	rests := func(id string, begin func(t *testing.T, c *compattest.Cluster) client.Object) {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			o := begin(t, c)
			// The last Event may be recorded after the status.
			pause.For(t.Context(), restTime)
			events := eventsOf(c, o)
			c.AtRest(c.Rest(), o)
			if after := eventsOf(c, o); !maps.Equal(events, after) {
				t.Errorf("the Events were %v, and are %v", events, after)
			}
		})
	}
	rests("F3", func(_ *testing.T, c *compattest.Cluster) client.Object {
		csv := c.CSV("crank.v1", requiring("gears.missing.example"))
		c.Make(csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhasePending, "RequirementsNotMet")
		return csv
	})
	rests("F3-Group", func(_ *testing.T, c *compattest.Cluster) client.Object {
		csv := c.CSV("crank.v1", supporting("AllNamespaces"))
		c.Make(csv)
		reaches(c, csv, failedPhase, "UnsupportedOperatorGroup")
		// A first phase is written before the annotations of the OperatorGroup.
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(csv); left != "" {
				return left
			}
			if _, annotated := csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]; !annotated {
				return "the ClusterServiceVersion has no annotations of its OperatorGroup yet"
			}
			return ""
		})
		return csv
	})
	rests("F3-Subscription", func(_ *testing.T, c *compattest.Cluster) client.Object {
		c.Catalog("shop", crank()(c))
		sub := c.Subscribe("shop", "pedal")
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionResolutionFailed, "True", "ConstraintsNotSatisfiable", begins("constraints not satisfiable: "))
		return sub
	})
	rests("F3-CatalogSource", func(_ *testing.T, c *compattest.Cluster) client.Object {
		invalidCatalog(c)
		source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "odd"}}
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			return exactly("unknown sourcetype: odd")(source.Status.Message)
		})
		return source
	})
}

// eventsOf returns how often each Event of an object was recorded.
func eventsOf(c *compattest.Cluster, o client.Object) map[string]int32 {
	counts := map[string]int32{}
	for _, e := range c.Events(o) {
		counts[e.Reason+": "+e.Message] += max(1, e.Count)
		if e.Series != nil {
			counts[e.Reason+": "+e.Message] += e.Series.Count
		}
	}
	return counts
}
