package compat_test

import (
	"slices"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
)

// unschedulable selects nodes that do not exist.
func unschedulable(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.NodeSelector = map[string]string{"compat.example/none": ""}
}

// onlyAllNamespaces makes a version fail in an OperatorGroup with targets.
func onlyAllNamespaces(csv *operatorsv1alpha1.ClusterServiceVersion) {
	for i := range csv.Spec.InstallModes {
		csv.Spec.InstallModes[i].Supported = csv.Spec.InstallModes[i].Type == operatorsv1alpha1.InstallModeTypeAllNamespaces
	}
}

// lampEntry returns a bundle with a version of lamp.
func lampEntry(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion, version string) fakecatalog.Entry {
	return fakecatalog.Entry{Name: csv.Name, Version: version, Replaces: csv.Spec.Replaces, Objects: []string{c.Manifest(csv)}}
}

// subscriptionStatus waits for a status of a Subscription.
func subscriptionStatus(c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, current, installed string, state operatorsv1alpha1.SubscriptionState) {
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		if s := sub.Status; s.CurrentCSV != current || s.InstalledCSV != installed || s.State != state {
			return "currentCSV " + s.CurrentCSV + ", installedCSV " + s.InstalledCSV + ", state " + string(s.State)
		}
		return ""
	})
}

// keepsAtLatest writes AtLatestKnown for lamp.v1 as OLM does, and checks that it is kept.
func keepsAtLatest(t *testing.T, c *compattest.Cluster, sub *operatorsv1alpha1.Subscription) {
	t.Helper()
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" || sub.Status.CurrentCSV == "lamp.v1" {
			return left
		}
		return "currentCSV " + sub.Status.CurrentCSV
	})
	log := logSubscriptions(t, c)
	mergeStatus(t, c, sub, `{"status":{"state":"AtLatestKnown","installedCSV":"lamp.v1","lastUpdated":`+c.Manifest(metav1.Now())+`}}`)
	pause.For(t.Context(), restTime)
	subscriptionStatus(c, sub, "lamp.v1", "lamp.v1", operatorsv1alpha1.SubscriptionStateAtLatest)
	c.AtRest(restTime, sub)
	kept := func(s operatorsv1alpha1.SubscriptionStatus) bool {
		return s.State == operatorsv1alpha1.SubscriptionStateAtLatest && s.InstalledCSV == "lamp.v1"
	}
	all := log.statuses(sub.Name)
	written := max(0, slices.IndexFunc(all, kept))
	for _, s := range all[written:] {
		if !kept(s) {
			t.Errorf("after OLM's, the Subscription had the status %s", c.Manifest(s))
		}
	}
}

// olmLooksAgain is how long OLM may show a state before it looks at the version.
const olmLooksAgain = 30 * time.Second

// TestAtLatestKnown checks which state and versions a Subscription has.
func TestAtLatestKnown(t *testing.T) {
	t.Parallel()
	first := func(t *testing.T, c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) (*fakecatalog.Server, *operatorsv1alpha1.Subscription) {
		t.Helper()
		server := c.Catalog("shelf", fakecatalog.Simple("lamp", lampEntry(c, csv, "1.0.0")))
		return server, c.Subscribe("shelf", "lamp", func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = "stable" })
	}
	compattest.Check(t, "M1", func(t *testing.T, c *compattest.Cluster) {
		_, sub := first(t, c, c.CSV("lamp.v1", unschedulable))
		subscriptionStatus(c, sub, "lamp.v1", "", operatorsv1alpha1.SubscriptionStateUpgradePending)
		plan := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: sub.Status.InstallPlanRef.Name}}
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(plan); left != "" {
				return left
			}
			if plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
				return "phase " + string(plan.Status.Phase)
			}
			return ""
		})
		pause.For(t.Context(), olmLooksAgain)
		subscriptionStatus(c, sub, "lamp.v1", "", operatorsv1alpha1.SubscriptionStateUpgradePending)
	})
	compattest.Check(t, "M2", func(t *testing.T, c *compattest.Cluster) {
		one := c.CSV("lamp.v1")
		server, sub := first(t, c, one)
		subscriptionStatus(c, sub, "lamp.v1", "lamp.v1", operatorsv1alpha1.SubscriptionStateAtLatest)
		two := c.CSV("lamp.v2", unschedulable)
		two.Spec.Replaces = one.Name
		replaceContent(server, fakecatalog.Simple("lamp", lampEntry(c, one, "1.0.0"), lampEntry(c, two, "2.0.0")))
		subscriptionStatus(c, sub, "lamp.v2", "lamp.v1", operatorsv1alpha1.SubscriptionStateUpgradePending)
		pause.For(t.Context(), olmLooksAgain)
		subscriptionStatus(c, sub, "lamp.v2", "lamp.v1", operatorsv1alpha1.SubscriptionStateUpgradePending)
	})
	compattest.Check(t, "M3", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("lamp.v1")
		_, sub := first(t, c, csv)
		subscriptionStatus(c, sub, "lamp.v1", "lamp.v1", operatorsv1alpha1.SubscriptionStateAtLatest)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp-v1"}}
		mergePatch(t, c, deployment, `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null},"template":{"spec":{"nodeSelector":{"compat.example/none":""}}}}}`)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(csv); left != "" {
				return left
			}
			if csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded {
				return "the version has succeeded"
			}
			return ""
		})
		pause.For(t.Context(), restTime)
		subscriptionStatus(c, sub, "lamp.v1", "lamp.v1", operatorsv1alpha1.SubscriptionStateAtLatest)
	})
	compattest.Check(t, "M4", func(t *testing.T, c *compattest.Cluster) {
		failed := c.CSV("lamp.v1", onlyAllNamespaces)
		_, sub := first(t, c, failed)
		reaches(c, failed, operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup)
		keepsAtLatest(t, c, sub)
	})
	compattest.Check(t, "M4-Installing", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("lamp.v1", unschedulable)
		_, sub := first(t, c, csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseInstalling, "")
		keepsAtLatest(t, c, sub)
	})
}
