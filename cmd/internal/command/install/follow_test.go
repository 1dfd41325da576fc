package install

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/approval"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestPlansOf returns the InstallPlans of one Subscription, with the versions of others that share them.
func TestPlansOf(t *testing.T) {
	t.Parallel()
	step := func(plan int, bundle, subscription string) dryrun.Step {
		return dryrun.Step{
			Schedule: dryrun.Schedule{Plan: plan}, Requesters: dryrun.Requesters{Subscriptions: []string{subscription}}, Change: dryrun.Change{Bundle: bundle},
		}
	}
	res := &dryrun.Result{Steps: []dryrun.Step{step(1, "wick.v1", "wick"), step(1, "lamp.v1", "lamp"), step(2, "wick.v2", "wick"), step(3, "lamp.v2", "lamp")}}
	if diff := cmp.Diff([]versionSet{{"lamp.v1", "wick.v1"}, {"lamp.v2"}}, plansOf(res, "lamp")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := plansOf(res, "torch"); got != nil {
		t.Errorf("%v", got)
	}
}

// TestProblemOf covers why a Subscription would not be installed. Problems of others do not count.
func TestProblemOf(t *testing.T) {
	t.Parallel()
	refusals := func(subscription string) []dryrun.Refusal {
		return []dryrun.Refusal{{Subscription: subscription, Reason: "no package"}}
	}
	for name, tt := range map[string]struct {
		result dryrun.Result
		want   string
	}{
		"None":    {},
		"Blocked": {result: dryrun.Result{Blocked: "no group", Refusals: refusals("lamp")}, want: "no group"},
		"Refused": {result: dryrun.Result{Refusals: refusals("lamp")}, want: "no package"},
		"Unknown": {result: dryrun.Result{Unknown: refusals("lamp")}, want: "no package"},
		"Other":   {result: dryrun.Result{Refusals: refusals("wick")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := problemOf(&tt.result, "lamp"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestFollow approves only an InstallPlan that was shown.
func TestFollow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		expected []versionSet
		patches  int
		says     string
	}{
		"Shown": {expected: []versionSet{{"lamp.v1", "wick.v1"}}, patches: 1, says: "has the approved InstallPlan install-a"},
		"Other": {expected: []versionSet{{"lamp.v1"}}, says: "has InstallPlan install-a, which installs wick.v1, lamp.v1 and not what was shown; check it with 'kubectl chandlery approve lamp -n shop --dry-run'"},
		"None":  {says: "and not what was shown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := fixtures.Subscription("shop", "lamp", "lamp", "wares")
			sub.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: "shop", Name: "install-a"}
			plan := &operatorsv1alpha1.InstallPlan{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "install-a"},
				Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"wick.v1", "lamp.v1"}},
				Status:     operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseRequiresApproval},
			}
			c, writes := fixtures.RecordingClient(t, sub, plan)
			var log bytes.Buffer
			f := follower{Client: c, Namespace: "shop", Log: &log, Timeout: 500 * time.Millisecond, Program: "kubectl chandlery"}
			if err := f.follow(t.Context(), "lamp", "", tt.expected); err == nil {
				t.Error("nothing is installed, and there is no error")
			}
			if len(writes.Patches) != tt.patches || !strings.Contains(log.String(), tt.says) {
				t.Errorf("patches %v, want %d; log %q, want %q", writes.Patches, tt.patches, log.String(), tt.says)
			}
		})
	}
}

// deletedPlans is a client for which InstallPlans are deleted before they can be approved.
type deletedPlans struct{ client.Client }

func (deletedPlans) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "installplans"}, object.GetName())
}

// TestFollowReplacedPlan has an InstallPlan that another one replaces before it is approved.
func TestFollowReplacedPlan(t *testing.T) {
	t.Parallel()
	sub := fixtures.Subscription("shop", "lamp", "lamp", "wares")
	sub.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: "shop", Name: "install-a"}
	plan := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "install-a"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v1"}},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseRequiresApproval},
	}
	c, _ := fixtures.RecordingClient(t, sub, plan)
	var log bytes.Buffer
	f := follower{Client: deletedPlans{c}, Namespace: "shop", Log: &log, Timeout: 500 * time.Millisecond, Program: "kubectl chandlery"}
	err := f.follow(t.Context(), "lamp", "", []versionSet{{"lamp.v1"}})
	if err == nil || errors.Is(err, approval.ErrDeleted) || !strings.Contains(log.String(), "waits for the plan that replaces install-a") {
		t.Errorf("error %v, want that of the timeout; log %q", err, log.String())
	}
}
