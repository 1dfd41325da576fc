package compat_test

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/test/compat/compattest"
)

// TestExplanations checks that explain names what a short message does not.
func TestExplanations(t *testing.T) {
	t.Parallel()
	explains := func(t *testing.T, c *compattest.Cluster, name string, parts ...string) {
		t.Helper()
		out, code := compattest.Supervisor(t, "explain", name, "-n", c.Namespace)
		if left := containing(parts...)(out); left != "" || code != 2 {
			t.Errorf("exit code %d; %s", code, left)
		}
	}
	for id, tc := range map[string]struct {
		change csvChange
		phase  operatorsv1alpha1.ClusterServiceVersionPhase
		reason operatorsv1alpha1.ConditionReason
		parts  []string
	}{
		"F14-Requirement": {requiring("gears.missing.example"), operatorsv1alpha1.CSVPhasePending, "RequirementsNotMet", []string{"gears.missing.example"}},
		"F14-Webhook":     {admissionWebhook(webhookRule("*", "things")), failedPhase, "InvalidWebhookDescription", []string{"spec.webhookdefinitions[0]"}},
		"F14-InstallMode": {supporting("AllNamespaces"), failedPhase, "UnsupportedOperatorGroup", []string{"OperatorGroup", "OwnNamespace"}},
	} {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			csv := c.CSV("crank.v1", tc.change)
			c.Make(csv)
			reaches(c, csv, tc.phase, tc.reason)
			explains(t, c, "csv/"+csv.Name, tc.parts...)
		})
	}
	compattest.Check(t, "F14-Catalog", func(t *testing.T, c *compattest.Cluster) {
		sub := invalidCatalog(c)
		waitForCondition(c, sub, operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, "True", "UnhealthyCatalogSourceFound", containing("/odd unhealthy"))
		explains(t, c, "catalogsource/odd", "odd", "sourceType")
	})
}
