package clusterserviceversion

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// TestHandOverReadsTheReport has a version with a successor. Its operator has just reported that it
// must not be replaced, and the cache lacks the report.
func TestHandOverReadsTheReport(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ops", Name: "kettle.v1"}
	silent := &operatorsv2.OperatorCondition{ObjectMeta: meta}
	reported := silent.DeepCopy()
	reported.Spec.Conditions = []metav1.Condition{{Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse, Reason: "Brewing", Message: "the water is hot"}}
	for name, tc := range map[string]struct {
		cached, live *operatorsv2.OperatorCondition
		successor    *phase.Neighbour
		held         bool
	}{
		"no report":                     {cached: silent, live: silent, successor: &phase.Neighbour{Name: "kettle.v2"}},
		"a report":                      {cached: reported, live: reported, successor: &phase.Neighbour{Name: "kettle.v2"}, held: true},
		"a report not in the cache":     {cached: silent, live: reported, successor: &phase.Neighbour{Name: "kettle.v2"}, held: true},
		"a report, and no successor":    {cached: reported, live: reported},
		"a withdrawal not in the cache": {cached: reported, live: silent, successor: &phase.Neighbour{Name: "kettle.v2"}, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observer{client: memory(t, tc.cached), live: memory(t, tc.live)}
			csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta}
			_, got, err := o.notUpgradeable(t.Context(), csv, phase.Replacement{Successor: tc.successor})
			if err != nil {
				t.Fatal(err)
			}
			if (got != "") != tc.held {
				t.Errorf("held by %q, want held: %t", got, tc.held)
			}
		})
	}
}
