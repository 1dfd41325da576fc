package catalogsource

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestMetricsEndWithTheCatalogSource records two CatalogSources, several times, and deletes them.
func TestMetricsEndWithTheCatalogSource(t *testing.T) {
	one, two := types.NamespacedName{Namespace: "metrics", Name: "one"}, types.NamespacedName{Namespace: "metrics", Name: "two"}
	sourcesBefore, readyBefore, wantedBefore := testutil.ToFloat64(sourceCount), testutil.CollectAndCount(ready), testutil.CollectAndCount(wantedReplicas)
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}}
	for range 2 {
		for _, key := range []types.NamespacedName{one, two} {
			recordExists(key)
			recordReady(key, true)
			recordWanted(key, d)
		}
	}
	if got := testutil.ToFloat64(sourceCount) - sourcesBefore; got != 2 {
		t.Errorf("catalog_source_count rises by %v", got)
	}
	if got := testutil.ToFloat64(wantedReplicas.WithLabelValues(one.Namespace, one.Name)); got != 2 {
		t.Errorf("%v wanted replicas", got)
	}
	recordWanted(one, nil)
	if got := testutil.CollectAndCount(wantedReplicas) - wantedBefore; got != 1 {
		t.Errorf("%d catalogs with a Deployment", got)
	}
	for range 2 {
		deleteMetrics(one)
		deleteMetrics(two)
	}
	if got := testutil.ToFloat64(sourceCount); got != sourcesBefore {
		t.Errorf("catalog_source_count is %v after the deletions, want %v", got, sourcesBefore)
	}
	if r, w := testutil.CollectAndCount(ready), testutil.CollectAndCount(wantedReplicas); r != readyBefore || w != wantedBefore {
		t.Errorf("%d and %d series after the deletions, want %d and %d", r, w, readyBefore, wantedBefore)
	}
}

// TestResetMetrics records two CatalogSources. One is deleted while no controller runs. The next controller counts only the
// other one.
func TestResetMetrics(t *testing.T) {
	t.Cleanup(ResetMetrics)
	ResetMetrics()
	stays, goes := types.NamespacedName{Namespace: "metrics", Name: "stays"}, types.NamespacedName{Namespace: "metrics", Name: "goes"}
	for _, key := range []types.NamespacedName{stays, goes} {
		recordExists(key)
		recordReady(key, false)
		recordWanted(key, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}})
	}
	ResetMetrics()
	if c, r, w := testutil.ToFloat64(sourceCount), testutil.CollectAndCount(ready), testutil.CollectAndCount(wantedReplicas); c != 0 || r != 0 || w != 0 {
		t.Errorf("stopped: %v CatalogSources, %d and %d series, want none", c, r, w)
	}
	recordExists(stays)
	if got := testutil.ToFloat64(sourceCount); got != 1 {
		t.Errorf("started again: catalog_source_count is %v, want 1", got)
	}
}
