package installplan

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// finished returns a plan with a generation and a phase; its name and UID contain both.
func finished(generation int, phase operatorsv1alpha1.InstallPlanPhase) operatorsv1alpha1.InstallPlan {
	name := fmt.Sprintf("%s-%d", phase, generation)
	return operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: at(generation)},
		Spec:       operatorsv1alpha1.InstallPlanSpec{Generation: generation},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
	}
}

func TestPlansToDelete(t *testing.T) {
	var plans []operatorsv1alpha1.InstallPlan
	for generation := range 4 {
		for _, phase := range []operatorsv1alpha1.InstallPlanPhase{phaseNone, phasePlanning, phaseRequiresApproval, phaseInstalling, phaseComplete, phaseFailed} {
			plans = append(plans, finished(generation, phase))
		}
	}
	referring := operatorsv1alpha1.Subscription{Status: operatorsv1alpha1.SubscriptionStatus{InstallPlanRef: &corev1.ObjectReference{Name: "Complete-0", UID: "Complete-0"}}}
	for _, tt := range []struct {
		reason string
		keep   int
		subs   []operatorsv1alpha1.Subscription
		want   []string
	}{
		{reason: "there is room", keep: 8},
		{reason: "the oldest go", keep: 5, want: []string{"Failed-1", "Complete-0", "Failed-0"}},
		{reason: "but not one that is referred to", keep: 5, subs: []operatorsv1alpha1.Subscription{{}, referring}, want: []string{"Failed-1", "Failed-0"}},
		{reason: "and none that has not ended", keep: 0, want: []string{"Complete-3", "Failed-3", "Complete-2", "Failed-2", "Complete-1", "Failed-1", "Complete-0", "Failed-0"}},
	} {
		var got []string
		for _, p := range plansToDelete(plans, tt.subs, tt.keep) {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
	same := []operatorsv1alpha1.InstallPlan{finished(1, phaseComplete), finished(1, phaseComplete)}
	same[0].Name, same[1].Name = "younger", "older"
	same[0].CreationTimestamp = metav1.NewTime(at(1).Add(time.Second))
	if got := plansToDelete(same, nil, 1); len(got) != 1 || got[0].Name != "older" {
		t.Errorf("of two with one generation goes %v", got)
	}
}

// TestCollectLeavesWhatRunsAgain has two plans too many, which are set to run again just before they are deleted.
func TestCollectLeavesWhatRunsAgain(t *testing.T) {
	scheme := fixtures.Scheme(t)
	for name, tc := range map[string]struct {
		reason string
		again  bool
		want   int
	}{
		"Ended": {"they are old", false, maxFinishedPlans},
		"Again": {"they are in progress", true, maxFinishedPlans + 2},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme)
			var last operatorsv1alpha1.InstallPlan
			for generation := range maxFinishedPlans + 2 {
				last = finished(generation, phaseComplete)
				last.Namespace, last.Name = "ops", strings.ToLower(last.Name)
				builder.WithObjects(last.DeepCopy())
			}
			c := builder.WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if tc.again {
						now := &operatorsv1alpha1.InstallPlan{}
						if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
							return err
						}
						now.Status.Phase = phaseInstalling
						if err := c.Update(ctx, now); err != nil {
							return err
						}
					}
					return c.Delete(ctx, o, opts...)
				},
			}).Build()
			deleteOldPlans(t.Context(), c, &last)
			var left operatorsv1alpha1.InstallPlanList
			if err := c.List(t.Context(), &left); err != nil || len(left.Items) != tc.want {
				t.Errorf("%s: %d plans are left, want %d; error %v", tc.reason, len(left.Items), tc.want, err)
			}
		})
	}
}
