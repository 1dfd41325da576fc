package approve

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

func installPlan(name string, phase operatorsv1alpha1.InstallPlanPhase, approved bool) operatorsv1alpha1.InstallPlan {
	return operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       operatorsv1alpha1.InstallPlanSpec{Approval: operatorsv1alpha1.ApprovalManual, Approved: approved},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
	}
}

func subscription(name, plan string) operatorsv1alpha1.Subscription {
	sub := operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if plan != "" {
		sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: plan}
	}
	return sub
}

func TestChoose(t *testing.T) {
	t.Parallel()
	automatic := installPlan("automatic", operatorsv1alpha1.InstallPlanPhaseComplete, true)
	automatic.Spec.Approval = operatorsv1alpha1.ApprovalAutomatic
	w := namespaceObjects{
		namespace: "shop",
		plans: []operatorsv1alpha1.InstallPlan{
			installPlan("waits", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, false),
			installPlan("planning", operatorsv1alpha1.InstallPlanPhasePlanning, false),
			installPlan("approved", operatorsv1alpha1.InstallPlanPhaseInstalling, true),
			installPlan("failed", operatorsv1alpha1.InstallPlanPhaseFailed, false),
			automatic,
		},
		subscriptions: []operatorsv1alpha1.Subscription{
			subscription("lamp", "waits"), subscription("new", ""), subscription("lost", "gone"), subscription("planning", "waits"),
		},
	}
	for name, tt := range map[string]struct {
		reason string
		names  []string
		all    bool
		want   []string
		notes  int
		err    string
		code   console.Code
	}{
		"Plan":         {reason: "a plan is named by itself", names: []string{"waits"}, want: []string{"waits"}},
		"Subscription": {reason: "or by a Subscription that it serves", names: []string{"lamp"}, want: []string{"waits"}},
		"Both":         {reason: "each is approved once", names: []string{"lamp", "waits", "subscription/planning"}, want: []string{"waits"}},
		"Plans first":  {reason: "of the same name, the plan is meant", names: []string{"planning"}, want: []string{"planning"}},
		"Kind":         {reason: "unless it is said what is meant", names: []string{"installplan/planning", "sub/lamp"}, want: []string{"planning", "waits"}},
		"All":          {reason: "all are those that wait, or will", all: true, want: []string{"waits", "planning"}},
		"Settled": {reason: "of others it says why not", names: []string{"approved", "failed", "automatic"}, want: []string{
			"approved is approved already, and in phase Installing", "failed does not wait for approval: it is in phase Failed", "automatic needs no approval, and is in phase Complete",
		}},
		"Nothing":     {reason: "a Subscription without a plan is no mistake", names: []string{"new", "lost"}, notes: 2},
		"UnknownName": {reason: "no InstallPlan or Subscription has the name", names: []string{"lmap"}, err: "these InstallPlans wait for approval: waits, planning; its Subscriptions are lamp, new, lost, planning", code: console.Negative},
		"Bad kind":    {reason: "so is another kind", names: []string{"pod/lamp"}, err: "names neither an InstallPlan nor a Subscription", code: console.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plans, notes, err := w.selectPlans(tt.names, tt.all)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("%s: error %v, want one with %q", tt.reason, err, tt.err)
			}
			if code := console.CodeOf(err); code != tt.code {
				t.Errorf("%s: exit code %d, want %d", tt.reason, code, tt.code)
			}
			var got []string
			for _, c := range plans {
				got = append(got, strings.TrimSpace(c.plan.Name+" "+c.why))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(notes) != tt.notes {
				t.Errorf("%s: notes %q (-want +got):\n%s", tt.reason, notes, diff)
			}
		})
	}
}
