package subscription

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// TestPendingStagesAfterOLM has statuses that OLM wrote: the reference keeps the version that the plan had when it was
// created, and there is no log.
func TestPendingStagesAfterOLM(t *testing.T) {
	const installing, complete, failed = operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.InstallPlanPhaseComplete, operatorsv1alpha1.InstallPlanPhaseFailed
	other := transitionlog.Log{}.Append(transitionlog.Transition{Plan: "install-old", UID: "old", Version: "2", Phase: string(complete)})
	for _, tt := range []struct {
		reason  string
		shown   operatorsv1alpha1.InstallPlanPhase
		entries transitionlog.Log
		plans   []*operatorsv1alpha1.InstallPlan
		want    []string
	}{
		{
			reason: "the plan is complete", shown: complete,
			plans: []*operatorsv1alpha1.InstallPlan{planAt(6, installing), planAt(9, complete)}, want: []string{"9 Complete"},
		},
		{
			reason: "the plan is complete, and its first events have expired", shown: complete,
			plans: []*operatorsv1alpha1.InstallPlan{planAt(9, complete)}, want: []string{"9 Complete"},
		},
		{
			reason: "the log ends with a plan before OLM", shown: complete, entries: other,
			plans: []*operatorsv1alpha1.InstallPlan{planAt(6, installing), planAt(9, complete)}, want: []string{"9 Complete"},
		},
		{
			reason: "the log has the plan", shown: complete,
			entries: other.Append(transitionlog.Transition{Plan: "install-a", UID: "plan", Version: "5", Phase: string(complete)}),
			plans:   []*operatorsv1alpha1.InstallPlan{planAt(6, installing), planAt(9, complete)}, want: []string{"6 Installing", "9 Complete"},
		},
		{
			reason: "the plan was complete after OLM had stopped", shown: installing,
			plans: []*operatorsv1alpha1.InstallPlan{planAt(6, installing), planAt(9, complete)}, want: []string{"9 Complete"},
		},
		{
			reason: "the plan went on after the stage that OLM wrote", shown: complete,
			plans: []*operatorsv1alpha1.InstallPlan{planAt(6, installing), planAt(9, complete), planAt(10, failed), planAt(11, complete)},
			want:  []string{"10 Failed", "11 Complete"},
		},
	} {
		tr := &tracker{ordered: true}
		for _, p := range tt.plans {
			tr.add(p, time.Unix(1, 0))
		}
		sub := showing(5)
		if tt.shown == installing {
			sub.Status.Conditions = []operatorsv1alpha1.SubscriptionCondition{isTrue(operatorsv1alpha1.SubscriptionInstallPlanPending, string(installing), "")}
		}
		list, _ := pendingStages(sub, tt.entries, tr.since, tt.plans[len(tt.plans)-1], time.Unix(2, 0))
		var got []string
		for _, s := range list {
			got = append(got, s.plan.ResourceVersion+" "+string(s.plan.Status.Phase))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.reason, diff)
		}
	}
}
