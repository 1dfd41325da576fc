package compat_test

import (
	"fmt"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// constrained returns a package whose version has a property olm.constraint.
func constrained(value string) func(*compattest.Cluster) fakecatalog.Package {
	return func(c *compattest.Cluster) fakecatalog.Package {
		p := crank()(c)
		p.Channels[0].Entries[0].Properties = []*api.Property{{Type: "olm.constraint", Value: value}}
		return p
	}
}

// TestCatalogContentSentences checks the messages about content of a catalog that cannot be resolved.
func TestCatalogContentSentences(t *testing.T) {
	t.Parallel()
	const unresolved = operatorsv1alpha1.SubscriptionResolutionFailed
	for _, tc := range []subscriptionCase{
		{
			id: "F-Subscription-SeveralChains", pkg: func(c *compattest.Cluster) fakecatalog.Package {
				return fakecatalog.Simple("crank",
					fakecatalog.Entry{Name: "crank.v1", Version: "1.0.0", Objects: []string{c.Manifest(c.CSV("crank.v1"))}},
					fakecatalog.Entry{Name: "crank.v2", Version: "2.0.0", Objects: []string{c.Manifest(c.CSV("crank.v2"))}})
			}, kind: unresolved, status: "True", reason: "ConstraintsNotSatisfiable",
			wording: anyway(containing("a unique replacement chain within a channel is required to determine the relative order between channel entries, " +
				`but 2 replacement chains were found in channel "stable" of package "crank": `)),
		},
		{
			id: "F-Subscription-ConstraintUnreadable", pkg: constrained(`{"odd":true}`), kind: unresolved, status: "True", reason: "ErrorPreventedResolution",
			wording: anyway(containing("parse olm.constraint: ")),
		},
		{
			id: "F-Subscription-ConstraintInvalid", pkg: constrained(`{"failureMessage":"no","cel":{"rule":"1 +"}}`), kind: unresolved, status: "True", reason: "ErrorPreventedResolution",
			wording: anyway(containing("convert olm.constraint to resolver predicate: ")),
		},
	} {
		compattest.Check(t, tc.id, func(_ *testing.T, c *compattest.Cluster) { checkSubscription(c, tc) })
	}
}

// invalidCatalog creates CatalogSource odd, whose type is unknown, and a Subscription to it.
func invalidCatalog(c *compattest.Cluster) *operatorsv1alpha1.Subscription {
	c.Make(&operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "odd"}, Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "odd"},
	})
	return c.Subscribe("odd", "crank")
}

// TestUnusableSentences checks conditions of Subscriptions whose catalog, namespace or plan cannot be used.
func TestUnusableSentences(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "F-Subscription-CatalogUnhealthy", func(_ *testing.T, c *compattest.Cluster) {
		sub := invalidCatalog(c)
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, "True", "UnhealthyCatalogSourceFound",
			exactly("targeted catalogsource "+c.Namespace+"/odd unhealthy"))
	})
	compattest.Check(t, "F-Subscription-NoRegistryClient", func(_ *testing.T, c *compattest.Cluster) {
		sub := invalidCatalog(c)
		key := c.Namespace + "/odd"
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionResolutionFailed, "True", "ErrorPreventedResolution",
			exactly("error using catalogsource "+key+": no registry client established for catalogsource "+key))
	})
	compattest.Check(t, "F-Subscription-SeveralGroups", func(_ *testing.T, c *compattest.Cluster) {
		secondGroup(c, nil)
		c.Catalog("shop", crank()(c))
		waitForCondition(c, c.Subscribe("shop", "crank"), operatorsv1alpha1.SubscriptionResolutionFailed, "True", "ErrorPreventedResolution",
			exactly("expected 1 OperatorGroup in the namespace, found 2"))
	})
	compattest.Check(t, "F-Subscription-BundleUnpacking", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "/blobs/")
		i.push(2)
		i.offers(2)
		waitForCondition(c, i.sub, unpacking, "True", "UnpackingInProgress", exactly(""))
	})
}

// TestWithdrawnDeprecations checks what remains of deprecations that a catalog withdraws.
func TestWithdrawnDeprecations(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "F6-Withdrawn", func(t *testing.T, c *compattest.Cluster) {
		shop := c.Catalog("shop", deprecated(c))
		sub := c.Subscribe("shop", "crank", onStable)
		changes := logDeprecations(t, c, sub)
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionDeprecated, "True", "",
			exactly("olm.package/crank: the package is old; olm.channel/stable: the channel is old; olm.bundle/crank.v1: the bundle is old"))
		fewer := deprecated(c)
		fewer.Channels[0].Deprecation = ""
		replaceContent(shop, fewer)
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionDeprecated, "True", "",
			exactly("olm.package/crank: the package is old; olm.bundle/crank.v1: the bundle is old"))
		absentConditions(c, sub, operatorsv1alpha1.SubscriptionChannelDeprecated)
		replaceContent(shop, crank()(c))
		absentConditions(c, sub, deprecations()...)
		c.AtRest(restTime, sub)
		// All four conditions are written with the installed version; then the catalog withdraws one, and then the others.
		if list := changes(); len(list) != 3 {
			t.Errorf("the deprecations changed %d times:\n%s", len(list), strings.Join(list, "\n"))
		}
	})
}

// deprecations are the conditions of Subscriptions about deprecations.
func deprecations() []operatorsv1alpha1.SubscriptionConditionType {
	return []operatorsv1alpha1.SubscriptionConditionType{
		operatorsv1alpha1.SubscriptionPackageDeprecated, operatorsv1alpha1.SubscriptionChannelDeprecated,
		operatorsv1alpha1.SubscriptionBundleDeprecated, operatorsv1alpha1.SubscriptionDeprecated,
	}
}

// logDeprecations watches a Subscription. It returns a function that ends the watch and returns what the conditions
// about deprecations became.
func logDeprecations(t *testing.T, c *compattest.Cluster, sub *operatorsv1alpha1.Subscription) func() []string {
	t.Helper()
	w, err := c.Watch(t.Context(), &operatorsv1alpha1.SubscriptionList{}, client.InNamespace(sub.Namespace), client.MatchingFields{"metadata.name": sub.Name})
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	last, ended := "", make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			seen, is := e.Object.(*operatorsv1alpha1.Subscription)
			if !is {
				continue
			}
			var all []string
			for _, kind := range deprecations() {
				if got := seen.Status.GetCondition(kind); got.Status == corev1.ConditionTrue {
					all = append(all, fmt.Sprintf("%s (%s): %s", kind, got.Reason, got.Message))
				}
			}
			text := strings.Join(all, "; ")
			if text != last {
				changes = append(changes, text)
			}
			last = text
		}
	}()
	return func() []string {
		w.Stop()
		<-ended
		return changes
	}
}

// absentConditions waits until a Subscription does not have some conditions.
func absentConditions(c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, kinds ...operatorsv1alpha1.SubscriptionConditionType) {
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		for _, kind := range kinds {
			if got := sub.Status.GetCondition(kind); got.Status != corev1.ConditionUnknown {
				return fmt.Sprintf("the condition is %+v", got)
			}
		}
		return ""
	})
}

// TestPlanRecovery checks InstallPlans whose namespace gets its OperatorGroup later.
func TestPlanRecovery(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "F-InstallPlan-GroupAgain", func(_ *testing.T, c *compattest.Cluster) {
		deleteGroup(c, nil)
		p := c.Plan("install-crank", []string{"crank.v1"}, configMapStep(c)...)
		const sentence = "no operator group found that is managing this namespace"
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(p); left != "" {
				return left
			}
			return exactly(sentence)(p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Message)
		})
		c.Make(&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{c.Namespace}},
		})
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(p); left != "" {
				return left
			}
			if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
				return fmt.Sprintf("the plan is %s: %s", p.Status.Phase, p.Status.Message)
			}
			return exactly("")(p.Status.Message + p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Message)
		})
	})
	compattest.Check(t, "F-InstallPlan-CRDRefused", func(t *testing.T, c *compattest.Cluster) {
		const name = "gears.refused.example"
		createAsOLM(c, crdNamed(name, "Gear", "v1"))
		refuse(t, c, requests{"apiextensions.k8s.io", "customresourcedefinitions", admissionregistrationv1.Update, fmt.Sprintf("request.name == %q", name)})
		p := c.Plan("install-crank", []string{"crank.v1"}, crdStep(name, "v1", "v2")(c)...)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(p); left != "" {
				return left
			}
			return containing(`error updating CRD "`+name+`": `, "the case refuses it")(p.Status.Message)
		})
	})
}
