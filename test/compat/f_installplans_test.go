package compat_test

import (
	"fmt"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

type planSteps = func(*compattest.Cluster) []*operatorsv1alpha1.Step

// stepsOf returns a plan with the step of the version and one more.
func stepsOf(kind, group, version, name, manifest string) planSteps {
	return func(c *compattest.Cluster) []*operatorsv1alpha1.Step {
		return []*operatorsv1alpha1.Step{csvStep(c), planStep(kind, group, version, name, manifest)}
	}
}

// TestStepSentences checks the messages of InstallPlans with a step that cannot be applied.
func TestStepSentences(t *testing.T) {
	t.Parallel()
	const installing, failed = operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.InstallPlanPhaseFailed
	unserved := "Unable to find GVK in discovery: apps v1 PodDisruptionBudget"
	unsupported := "CRD APIVersion from manifest not supported: v2"
	dependent := "pre-existing CRD owners found for owned CRD(s) of dependent CSV crank.v1"
	unreadable := "error parsing step manifest: crank: "
	noSecret := "secret crank does not exist - "
	ended := func(id string, steps planSteps, text string) planCase {
		return planCase{id: id, steps: steps, phase: failed, message: containing(text), status: "False", reason: "InstallComponentFailed", condition: containing(text)}
	}
	owned := ended("F-InstallPlan-DependentOwners", func(c *compattest.Cluster) []*operatorsv1alpha1.Step {
		return []*operatorsv1alpha1.Step{planStep("ClusterServiceVersion", "operators.coreos.com", "v1alpha1", "crank.v1", c.Manifest(c.CSV("crank.v1", owning("things.dependent.example"))))}
	}, dependent)
	owned.before, owned.names = claimants("things.dependent.example", "first.v1"), []string{"other.v1"}
	several := ended("F-InstallPlan-SeveralOwners", func(c *compattest.Cluster) []*operatorsv1alpha1.Step {
		return []*operatorsv1alpha1.Step{planStep("ClusterServiceVersion", "operators.coreos.com", "v1alpha1", "crank.v1", c.Manifest(c.CSV("crank.v1", owning("things.several.example"))))}
	}, "")
	claimed := matches(`.*Existing CSVs \[(first\.v1 second\.v1|second\.v1 first\.v1)\] in namespace compat-[a-z0-9-]+ all claim to own CRD things\.several\.example.*`)
	several.message, several.condition = claimed, claimed
	several.before, several.names = claimants("things.several.example", "first.v1", "second.v1"), []string{"other.v1"}
	for _, tc := range []planCase{
		ended("F-InstallPlan-KindNotServed", stepsOf("PodDisruptionBudget", "apps", "v1", "crank", `{"apiVersion":"apps/v1","kind":"PodDisruptionBudget","metadata":{"name":"crank"}}`), unserved),
		ended("F-InstallPlan-KindNotSupported", stepsOf("Pedal", "apps", "v1", "crank", `{"apiVersion":"apps/v1","kind":"Pedal","metadata":{"name":"crank"}}`), "the InstallPlan contains invalid data"),
		ended("F-InstallPlan-CRDVersion", stepsOf("CustomResourceDefinition", "apiextensions.k8s.io", "v2", "gears.new.example",
			`{"apiVersion":"apiextensions.k8s.io/v2","kind":"CustomResourceDefinition","metadata":{"name":"gears.new.example"}}`), unsupported),
		ended("F-InstallPlan-CRDRemoved", stepsOf("CustomResourceDefinition", "apiextensions.k8s.io", "v1beta1", "gears.old.example",
			`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"gears.old.example"}}`),
			"api-server resource not found installing CustomResourceDefinition gears.old.example: GroupVersionKind apiextensions.k8s.io/v1beta1, Kind=CustomResourceDefinition not found on the cluster"),
		ended("F-InstallPlan-ManifestUnreadable", stepsOf("ConfigMap", "", "v1", "crank", `{"apiVersion":`), unreadable),
		ended("F-InstallPlan-SecretMissing", stepsOf("Secret", "", "v1", "crank", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"crank"}}`), noSecret),
		owned, several,
		{
			id: "F-InstallPlan-AccountMissing", before: func(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
				awaitTargets(c)
				changeObject(c, ownGroup(c), map[string]any{"spec": map[string]any{"serviceAccountName": "gone"}})
			}, steps: configMapStep, phase: installing, message: exactly(""), status: "False", reason: "InstallCheckFailed",
			condition: matches(`please make sure the service account exists\. sa=gone operatorgroup=compat-[a-z0-9-]+/group`),
		},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkPlan(c, tc) })
	}
	compattest.Check(t, "F-InstallPlan-RequiresApproval", func(_ *testing.T, c *compattest.Cluster) {
		c.Catalog("shop", crank()(c))
		sub := c.Subscribe("shop", "crank", withManualApproval)
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionInstallPlanPending, "True", "RequiresApproval", exactly(""))
		plan := planOfSubscription(sub)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(plan); left != "" {
				return left
			}
			if plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
				return "the phase is " + string(plan.Status.Phase)
			}
			return exactly("")(plan.Status.Message)
		})
	})
}

// claimants creates versions that own a definition. They wait for another definition.
func claimants(crd string, names ...string) func(*compattest.Cluster, *operatorsv1alpha1.ClusterServiceVersion) {
	return func(c *compattest.Cluster, _ *operatorsv1alpha1.ClusterServiceVersion) {
		c.Make(crdNamed(crd, "Thing", "v1"))
		for _, name := range names {
			csv := c.CSV(name, owning(crd), requiring("gears.missing.example"))
			c.Make(csv)
			reaches(c, csv, operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsNotMet)
		}
	}
}

// TestResolutionSentences checks further messages of conditions of Subscriptions.
func TestResolutionSentences(t *testing.T) {
	t.Parallel()
	const unresolved = operatorsv1alpha1.SubscriptionResolutionFailed
	for _, tc := range []subscriptionCase{
		{
			id: "F-Subscription-InstallPlanInstalling", pkg: unservedKind, kind: operatorsv1alpha1.SubscriptionInstallPlanPending, status: "True", reason: "Installing",
			wording: anyway(exactly("")),
		},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkSubscription(c, tc) })
	}
	compattest.Check(t, "F-Subscription-NoCatalogs", func(_ *testing.T, c *compattest.Cluster) {
		sub := c.Subscribe("gone", "crank")
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, "True", "NoCatalogSourcesFound",
			exactly("dependency resolution requires at least one catalogsource"))
	})
	compattest.Check(t, "F-Subscription-PlanRefused", func(t *testing.T, c *compattest.Cluster) {
		refuse(t, c, requests{"operators.coreos.com", "installplans", admissionregistrationv1.Create, ""})
		c.Catalog("shop", crank()(c))
		sub := c.Subscribe("shop", "crank")
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "True", "EnsureInstallPlanFailed", begins("error ensuring InstallPlan: "))
	})
	compattest.Check(t, "F-Subscription-NoGroup", func(_ *testing.T, c *compattest.Cluster) {
		deleteGroup(c, nil)
		c.Catalog("shop", crank()(c))
		sub := c.Subscribe("shop", "crank")
		waitForCondition(c, sub, unresolved, "True", "ErrorPreventedResolution", exactly("expected 1 OperatorGroup in the namespace, found 0"))
	})
}

// TestServerSentences checks further messages of CatalogSources.
func TestServerSentences(t *testing.T) {
	t.Parallel()
	polled := func(c *compattest.Cluster, poll map[string]any) client.Object {
		source := anObject("operators.coreos.com/v1alpha1", "CatalogSource", c.Namespace, "shop")
		source.Object["spec"] = map[string]any{"sourceType": "grpc", "image": "registry.example/shop:1", "updateStrategy": map[string]any{"registryPoll": poll}}
		return source
	}
	for id, tc := range map[string]struct {
		poll map[string]any
		want string
	}{
		"F-CatalogSource-IntervalInvalid": {
			map[string]any{"interval": "often"},
			`error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: invalid duration "often"`,
		},
		"F-CatalogSource-IntervalAbsent": {
			map[string]any{}, `error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: invalid duration ""`,
		},
	} {
		compattest.Check(t, id, func(_ *testing.T, c *compattest.Cluster) {
			c.Make(polled(c, tc.poll))
			saysCatalog(c, operatorsv1alpha1.CatalogSourceIntervalInvalidError, exactly(tc.want))
		})
	}
	compattest.Check(t, "F-CatalogSource-ServerRefused", func(t *testing.T, c *compattest.Cluster) {
		refuse(t, c, requests{"", "services", admissionregistrationv1.Create, ""})
		c.Make(&operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shop"},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "registry.example/shop:1"},
		})
		saysCatalog(c, operatorsv1alpha1.CatalogSourceRegistryServerError, begins("couldn't ensure registry server - "))
	})
	compattest.Check(t, "F-CatalogSource-TemplateUnresolved", func(_ *testing.T, c *compattest.Cluster) {
		template := "registry.example/shop:{group:,version:v1,kind:ConfigMap,name:gone,namespace:" + c.Namespace + ",jsonpath:.data.tag}"
		source := &operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shop", Annotations: map[string]string{"olm.catalogImageTemplate": template}},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "registry.example/shop:1"},
		}
		c.Make(source)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			got := apimeta.FindStatusCondition(source.Status.Conditions, "TemplatesHaveResolved")
			if got == nil || got.Status != metav1.ConditionFalse || got.Reason != "UnableToResolve" {
				return "the conditions are " + c.Manifest(source.Status.Conditions)
			}
			return exactly("cannot construct catalog image reference, because one or more template(s) has improper syntax")(got.Message)
		})
	})
}

// saysCatalog waits until the CatalogSource shop has a reason and a message.
func saysCatalog(c *compattest.Cluster, reason operatorsv1alpha1.ConditionReason, check wording) {
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shop"}}
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		if source.Status.Reason != reason {
			return fmt.Sprintf("the status is %s: %s", source.Status.Reason, source.Status.Message)
		}
		return check(source.Status.Message)
	})
}

// TestWarningSentences checks the notes of further Warnings.
func TestWarningSentences(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "F-Event-CRDValidation", func(_ *testing.T, c *compattest.Cluster) {
		const name = "gears.converted.example"
		createAsOLM(c, crdNamed(name, "Gear", "v1"))
		c.Eventually(compattest.Patience, func() string {
			if err := c.Create(background(c), anObject("converted.example/v1", "Gear", c.Namespace, "gear")); err != nil {
				return err.Error()
			}
			return ""
		})
		plan := c.Plan("install-crank", []string{"crank.v1"}, convertedSteps(c, name)...)
		c.Eventually(compattest.Patience, func() string {
			return eventAbout(c, c.Namespace, plan.UID, plan.Name, corev1.EventTypeWarning, "CRDValidation", bothOf(
				begins("Validation of existing CRs against the new CRD's schema failed, but a webhook conversion strategy was specified in the new CRD.\n"),
				containing("CRD: \""+name+"\"\n", "Validation Error: ")))
		})
	})
	compattest.Check(t, "F-Event-WarningsWithoutOwner", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), kindNamed("Service")
		manifest := field(field(f.manifestOf(k), "None", "spec", "clusterIP"), "ClientIP", "spec", "sessionAffinity")
		p := f.plan("by-hand", f.step(k, manifest, unresolved))
		f.complete(p)
		c.Eventually(compattest.Patience, func() string {
			return eventAbout(c, c.Namespace, p.UID, p.Name, corev1.EventTypeWarning, "AppliedWithWarnings",
				exactly(`1 warning(s) generated during operator installation (Service "hook"): `+headlessWarning))
		})
	})
	compattest.Check(t, "F-Event-BundleUnpackFailed", func(_ *testing.T, c *compattest.Cluster) {
		c.Catalog("shop", fakecatalog.Simple("crank", fakecatalog.Entry{Name: "crank.v1", Version: "1.0.0", Image: "127.0.0.1:9/" + c.Namespace + ":1"}))
		sub := c.Subscribe("shop", "crank")
		c.Eventually(compattest.Patience, func() string {
			return eventAbout(c, c.Namespace, sub.UID, sub.Name, corev1.EventTypeWarning, "BundleUnpackFailed", begins("Bundle unpacking failed - "))
		})
	})
}

// convertedSteps returns a plan with a definition that makes its objects invalid, and has a conversion webhook.
func convertedSteps(c *compattest.Cluster, name string) []*operatorsv1alpha1.Step {
	steps := strictStep(name)(c)
	crd := crdNamed(name, "Gear", "v1")
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Required = []string{"spec"}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object"}}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: c.Namespace, Name: "crank-v1-service"}},
		},
	}
	steps[1].Resource.Manifest = c.Manifest(crd)
	return steps
}
