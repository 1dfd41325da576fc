package compat_test

import (
	"fmt"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// TestAlone has the cases that restart the program or change the configuration of the cluster, and L14, whose deletion
// takes many requests one after the other: beside 15 other cases each takes a quarter of a second. Parallel tests begin
// after it.
func TestAlone(t *testing.T) { //nolint:paralleltest // no other case may run beside these
	compattest.CheckAlone(t, "L16", func(t *testing.T, c *compattest.Cluster) {
		restart := compattest.StopSupervisor(t)
		service := localAPIService("l16.hats.example", ownerLabelsOf(c.Namespace, "hat.v1"))
		c.Make(service)
		restart()
		c.Gone(orphanTime, service)
	})
	compattest.CheckAlone(t, "L14", testRecreatedVersion)
	compattest.CheckAlone(t, "N10", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "")
		i.offers(2)
		i.says(compattest.Patience, unpackFailed, "BundleUnpackFailed", begins(notFound))
		compattest.StopSupervisor(t)()
		i.stays()
		i.says(compattest.Patience, unpackFailed, "BundleUnpackFailed", begins(notFound))
	})
	compattest.CheckAlone(t, "B50-Metric", testWarningMetric)
	compattest.CheckAlone(t, "H1-Metric", func(t *testing.T, c *compattest.Cluster) {
		const metric = `chandlery_installplan_dropped_fields_total{kind="ConfigMap"}`
		before := compattest.Metric(t, metric)
		b := newBundleFixture(t, c)
		p := b.install(field(field(b.object("ConfigMap"), "1", "bogus"), "2", "metadata", "bogus"))
		b.AtRest(2*time.Second, p)
		if added := compattest.Metric(t, metric) - before; added != 2 {
			t.Errorf("%s rose by %v, want 2", metric, added)
		}
	})
	compattest.CheckAlone(t, "K11", testDisabledCopies)
	compattest.CheckAlone(t, "F-OLMConfig-CopiesMissing", func(t *testing.T, c *compattest.Cluster) {
		elsewhere := c.NewNamespace()
		c.Make(operatorGroup(elsewhere, "all"))
		refuse(t, c, requests{"operators.coreos.com", "clusterserviceversions", admissionregistrationv1.Create, ""})
		csv := c.CSV("crank.v1")
		csv.Namespace = elsewhere
		c.Make(csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		disableCopies(t, c, false)
		saysConfig(c, metav1.ConditionFalse, "CopiedCSVsEnabled", "Copied CSVs are enabled and at least one copied CSVs is missing")
	})
}

// testDisabledCopies has two OperatorGroups for all namespaces, and copies only in the protected namespace.
func testDisabledCopies(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	left, right := c.NewNamespace(), c.NewNamespace()
	c.Make(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: compattest.ProtectedNamespace}},
		plotsDefinition("k11.field.example"), operatorGroup(left, "left"),
	)
	// The age of an OperatorGroup has whole seconds.
	pause.For(t.Context(), time.Second)
	c.Make(operatorGroup(right, "right"))
	first := c.CSV("plots.left", (&neighbours{group: "k11.field.example"}).providesPlots)
	first.Namespace = left
	c.Make(first)
	reaches(c, first, operatorsv1alpha1.CSVPhaseSucceeded, "")
	copyIn := func(namespace string) *operatorsv1alpha1.ClusterServiceVersion {
		return &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: first.Name}}
	}
	for _, namespace := range []string{c.Namespace, compattest.ProtectedNamespace} {
		c.Eventually(compattest.Patience, func() string { return c.Read(copyIn(namespace)) })
	}
	disableCopies(t, c, true)
	saysConfig(c, metav1.ConditionTrue, "CopiedCSVsDisabled", "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode")
	c.Gone(compattest.Patience, copyIn(c.Namespace))
	c.Eventually(compattest.Patience, func() string {
		return eventAbout(c, left, first.UID, first.Name, corev1.EventTypeWarning, "DisabledCopiedCSVs", exactly("CSV copying disabled for "+left+"/"+first.Name))
	})
	copies, versions := logVersions(t, c, compattest.ProtectedNamespace), logVersions(t, c, right)
	second := c.CSV("plots.right", (&neighbours{group: "k11.field.example"}).providesPlots)
	second.Namespace = right
	c.Make(second)
	reaches(c, second, failedPhase, conflictingGroups)
	pause.For(t.Context(), restTime)
	firstIsFailed(t, second, versions)
	if copies.has(second.Name) {
		t.Error("the failed version had a copy in the protected namespace")
	}
	if missing := c.Read(copyIn(compattest.ProtectedNamespace)); missing != "" {
		t.Error(missing)
	}
	// OLM reports that the copies of a failed version are missing.
	if err := c.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	disableCopies(t, c, false)
	saysConfig(c, metav1.ConditionFalse, "CopiedCSVsEnabled", "Copied CSVs are enabled and present across the cluster")
}

// olmConfig returns the only OLMConfig.
func olmConfig() *operatorsv1.OLMConfig {
	return &operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
}

// disableCopies sets disableCopiedCSVs until the case ends.
func disableCopies(t *testing.T, c *compattest.Cluster, disabled bool) {
	t.Helper()
	if err := c.Create(t.Context(), olmConfig()); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	mergePatch(t, c, olmConfig(), fmt.Sprintf(`{"spec":{"features":{"disableCopiedCSVs":%t}}}`, disabled))
	t.Cleanup(func() {
		reset := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"features":null}}`))
		if err := c.Patch(background(c), olmConfig(), reset); err != nil {
			t.Error(err)
		}
	})
}

// saysConfig waits for the condition DisabledCopiedCSVs of the OLMConfig.
func saysConfig(c *compattest.Cluster, status metav1.ConditionStatus, reason, message string) {
	config := olmConfig()
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(config); left != "" {
			return left
		}
		got := apimeta.FindStatusCondition(config.Status.Conditions, "DisabledCopiedCSVs")
		if got == nil || got.Status != status || got.Reason != reason || got.Message != message {
			return "the conditions are " + c.Manifest(config.Status.Conditions)
		}
		return ""
	})
}
