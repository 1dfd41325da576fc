package subscription

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestFormerPlans checks which names the next plan must not have.
func TestFormerPlans(t *testing.T) {
	t.Parallel()
	fresh, refers := subscription("fresh", "lamp"), subscription("refers", "lamp")
	refers.Status.InstallPlanRef = &corev1.ObjectReference{Name: "install-a"}
	got := formerPlans([]*decision{{subscription: fresh}, {subscription: refers}})
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"install-a"}) {
		t.Errorf("the former names are %q", names)
	}
}
