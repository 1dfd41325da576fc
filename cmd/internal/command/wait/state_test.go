package wait

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

// TestFailedVersion covers a failed version, which another one may replace.
func TestFailedVersion(t *testing.T) {
	t.Parallel()
	v1, v2 := csvIn("lamp.v1", "1.0.0", operatorsv1alpha1.CSVPhaseFailed), csvIn("lamp.v2", "2.0.0", operatorsv1alpha1.CSVPhaseFailed)
	pending, planning := planIn(operatorsv1alpha1.InstallPlanPhaseRequiresApproval), planIn(operatorsv1alpha1.InstallPlanPhasePlanning)
	planning.Status.Conditions = nil
	const (
		approval = "waits for approval of InstallPlan install-a (lamp.v2)"
		failedV1 = "failed: ClusterServiceVersion lamp.v1: the pod crashes"
		failedV2 = "failed: ClusterServiceVersion lamp.v2: the pod crashes"
		shownV1  = "installs lamp.v1: phase Failed: the pod crashes"
	)
	for name, tt := range map[string]struct {
		objects Objects
		goal    Goal
		version string
		is      string
		done    bool
		failed  bool
	}{
		"Installed":         {objects: Objects{Installed: v1, Current: v1}, goal: Installed, is: failedV1, done: true, failed: true},
		"Awaited":           {objects: Objects{Installed: v1, Current: v1}, goal: Installed, version: "1.0.0", is: failedV1, done: true, failed: true},
		"OtherAwaited":      {objects: Objects{Installed: v1, Current: v1}, goal: Installed, version: "2.0.0", is: shownV1},
		"NeverInstalled":    {objects: Objects{Current: v1}, goal: Installed, version: "2.0.0", is: failedV1, done: true, failed: true},
		"BeforeAwaited":     {objects: Objects{Installed: v1, Current: v2}, goal: Installed, version: "3.0.0", is: failedV2, done: true, failed: true},
		"ReplacedAnyGoal":   {objects: Objects{Installed: v1, Plan: pending}, goal: Installed, is: approval},
		"ReplacedPending":   {objects: Objects{Installed: v1, Plan: pending}, goal: Installed, version: "2.0.0", is: approval},
		"Approval":          {objects: Objects{Installed: v1, Plan: pending}, goal: Approval, is: approval, done: true},
		"ApprovalOfCurrent": {objects: Objects{Installed: v1, Current: v1, Plan: pending}, goal: Approval, is: approval, done: true},
		"ApprovalPlanning":  {objects: Objects{Current: v1, Plan: planning}, goal: Approval, is: "has InstallPlan install-a in phase Planning; " + shownV1},
		"NoApproval":        {objects: Objects{Installed: v1, Current: v1}, goal: Approval, is: failedV1, done: true, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.objects.Subscription = &operatorsv1alpha1.Subscription{}
			if tt.objects.Installed != nil {
				tt.objects.Subscription.Status.InstalledCSV = tt.objects.Installed.Name
			}
			want := console.WaitState{Object: "Subscription shop/lamp", Is: tt.is, Done: tt.done, Failed: tt.failed}
			if diff := cmp.Diff(want, SubscriptionState("shop/lamp", &tt.objects, tt.goal, tt.version)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
