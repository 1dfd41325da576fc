package install

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	apiversion "github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func planOf(name string, phase operatorsv1alpha1.InstallPlanPhase, approved bool, versions ...string) *operatorsv1alpha1.InstallPlan {
	return &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec:       operatorsv1alpha1.InstallPlanSpec{Approved: approved, ClusterServiceVersionNames: versions},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
	}
}

func versionOf(name, number string, phase operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       operatorsv1alpha1.ClusterServiceVersionSpec{Version: apiversion.OperatorVersion{Version: semver.MustParse(number)}},
		Status:     operatorsv1alpha1.ClusterServiceVersionStatus{Phase: phase},
	}
}

// TestReplacedPlan covers which InstallPlans a change of the channel replaces.
func TestReplacedPlan(t *testing.T) {
	t.Parallel()
	const waits = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	for name, tt := range map[string]struct {
		plan *operatorsv1alpha1.InstallPlan
		want types.UID
	}{
		"None":       {},
		"Pending":    {plan: planOf("install-a", waits, false, "lamp.v2"), want: "install-a"},
		"Planning":   {plan: planOf("install-a", operatorsv1alpha1.InstallPlanPhasePlanning, false, "lamp.v2"), want: "install-a"},
		"Failed":     {plan: planOf("install-a", operatorsv1alpha1.InstallPlanPhaseFailed, true, "lamp.v2"), want: "install-a"},
		"Complete":   {plan: planOf("install-a", operatorsv1alpha1.InstallPlanPhaseComplete, true, "lamp.v1"), want: "install-a"},
		"Approved":   {plan: planOf("install-a", waits, true, "lamp.v2")},
		"Installing": {plan: planOf("install-a", operatorsv1alpha1.InstallPlanPhaseInstalling, true, "lamp.v2")},
		"Expected":   {plan: planOf("install-a", waits, false, "wick.v1", "lamp.v3")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := replacedPlan(tt.plan, []versionSet{{"lamp.v3", "wick.v1"}}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// channelSupervisor is a client of a cluster whose supervisor replaces the InstallPlan of a Subscription some time after
// its channel changes, and installs the version of an approved plan.
type channelSupervisor struct {
	client.Client

	// reads is the number of reads of the Subscription since the change.
	reads   int
	changed bool
}

// replaceAfter is the number of reads that still see the old plan.
const replaceAfter = 1

func (s *channelSupervisor) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := s.Client.Patch(ctx, o, patch, opts...); err != nil {
		return err
	}
	if _, is := o.(*operatorsv1alpha1.Subscription); is {
		s.changed = true
		return nil
	}
	version := versionOf("lamp.v3", "3.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
	if err := s.Create(ctx, version); err != nil {
		return err
	}
	return s.change(ctx, func(status *operatorsv1alpha1.SubscriptionStatus) { status.InstalledCSV = version.Name })
}

func (s *channelSupervisor) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, is := o.(*operatorsv1alpha1.Subscription); is && s.changed {
		s.reads++
		if s.reads == replaceAfter+1 {
			if err := s.replace(ctx); err != nil {
				return err
			}
		}
	}
	return s.Client.Get(ctx, key, o, opts...)
}

func (s *channelSupervisor) replace(ctx context.Context) error {
	if err := s.Create(ctx, planOf("install-b", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, false, "lamp.v3")); err != nil {
		return err
	}
	return s.change(ctx, func(status *operatorsv1alpha1.SubscriptionStatus) {
		status.CurrentCSV = "lamp.v3"
		status.InstallPlanRef = &corev1.ObjectReference{Namespace: "shop", Name: "install-b", UID: "install-b"}
	})
}

func (s *channelSupervisor) change(ctx context.Context, change func(*operatorsv1alpha1.SubscriptionStatus)) error {
	sub := &operatorsv1alpha1.Subscription{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "lamp"}, sub); err != nil {
		return err
	}
	change(&sub.Status)
	return s.Update(ctx, sub)
}

// TestChannelChange changes the channel of a Subscription whose status still names an InstallPlan of the old channel.
func TestChannelChange(t *testing.T) {
	t.Parallel()
	const succeeded, failed = operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed
	for name, tt := range map[string]struct {
		plan    *operatorsv1alpha1.InstallPlan
		version *operatorsv1alpha1.ClusterServiceVersion
		// installed is status.installedCSV, and current is status.currentCSV.
		installed, current string
		// log is the first line of the log.
		log string
	}{
		"Pending": {
			plan:    planOf("install-a", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, false, "lamp.v2"),
			version: versionOf("lamp.v1", "1.0.0", succeeded), installed: "lamp.v1", current: "lamp.v2",
			log: "Subscription shop/lamp waits for the plan that replaces install-a",
		},
		"FailedPlan": {
			plan:    planOf("install-a", operatorsv1alpha1.InstallPlanPhaseFailed, true, "lamp.v2"),
			version: versionOf("lamp.v1", "1.0.0", succeeded), installed: "lamp.v1", current: "lamp.v2",
			log: "Subscription shop/lamp waits for the plan that replaces install-a",
		},
		"FailedVersion": {
			plan:    planOf("install-a", operatorsv1alpha1.InstallPlanPhaseComplete, true, "lamp.v1"),
			version: versionOf("lamp.v1", "1.0.0", failed), current: "lamp.v1",
			log: "Subscription shop/lamp has no version yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := fixtures.Subscription("shop", "lamp", "lamp", "wares")
			sub.Status.InstalledCSV, sub.Status.CurrentCSV = tt.installed, tt.current
			sub.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: "shop", Name: tt.plan.Name, UID: tt.plan.UID}
			s := &channelSupervisor{Client: fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(sub, tt.plan, tt.version).Build()}
			found, err := wait.Reader{Client: s, Namespace: "shop"}.Subscription(t.Context(), "lamp")
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetContext(t.Context())
			cmd.SetErr(&log)
			o := upgradeOptions{channel: "beta", timeout: time.Minute}
			outcome, err := o.apply(cmd, s, found, path{plans: []versionSet{{"lamp.v3"}}, to: "lamp.v3"})
			if err != nil || outcome != upgraded {
				t.Errorf("outcome %s, error %v", outcome, err)
			}
			if line, _, _ := strings.Cut(log.String(), "\n"); line != tt.log {
				t.Errorf("log %q, want the first line %q", log.String(), tt.log)
			}
			old := &operatorsv1alpha1.InstallPlan{}
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(tt.plan), old); err != nil || old.Spec.Approved != tt.plan.Spec.Approved {
				t.Errorf("the old plan has approved %t, error %v", old.Spec.Approved, err)
			}
		})
	}
}
