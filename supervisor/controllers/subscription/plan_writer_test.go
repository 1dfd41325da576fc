package subscription

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestPlanOfOlderVersion checks which plans examine the stored objects before they change
// definitions.
func TestPlanOfOlderVersion(t *testing.T) {
	type list = []*operatorsv1alpha1.ClusterServiceVersion
	for _, tt := range []struct {
		reason, pin string
		csvs        list
		want        string
	}{
		{reason: "an older version", pin: "lamp.v1", csvs: list{version("lamp.v2", "lamp", succeeded)}, want: "lamp.v1"},
		{reason: "the first version, and it is named", pin: "lamp.v1", want: "lamp.v1"},
		{reason: "the first version", csvs: nil},
		{reason: "an update", pin: "lamp.v2", csvs: list{version("lamp.v1", "lamp", succeeded)}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			sub := subscription("my", "lamp", pinned(tt.pin))
			o := observed(read(t), sub).with(tt.csvs)
			d := decided(t, o)[0]
			plans := desiredPlans([]*decision{d})
			if len(plans) != 1 || d.err != nil {
				t.Fatalf("%d plans, error %v", len(plans), d.err)
			}
			if got := newPlan(o, "p", plans[0]).Annotations[api.AnnotationReverts]; got != tt.want {
				t.Errorf("goes back to %q, want %q", got, tt.want)
			}
		})
	}
}
