package subscription

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

func TestNamespaceBacklogs(t *testing.T) {
	sub := func(namespace, name, version string) operatorsv1alpha1.Subscription {
		s := *subscription(name, "lamp")
		s.Namespace, s.ResourceVersion = namespace, version
		return s
	}
	plan := func(version string, owner operatorsv1alpha1.Subscription) operatorsv1alpha1.InstallPlan {
		p := *installPlan("p", "lamp.v1", "Installing", 1, &owner)
		p.Namespace, p.ResourceVersion = owner.Namespace, version
		return p
	}
	late, later, told := sub("late", "a", "7"), sub("later", "a", "8"), sub("told", "a", "3")
	earlier, idle := sub("later", "b", "5"), sub("idle", "a", "1")
	got := namespaceBacklogs(
		[]operatorsv1alpha1.Subscription{idle, late, later, told, earlier},
		[]operatorsv1alpha1.InstallPlan{plan("9", late), plan("9", later), plan("6", earlier)},
	)
	want := []namespaceBacklog{{namespace: "later", from: 5}, {namespace: "late", from: 7}, {namespace: "idle"}, {namespace: "told"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(namespaceBacklog{})); diff != "" {
		t.Error(diff)
	}
}

func TestWithFirstStage(t *testing.T) {
	noon := time.Unix(43200, 0)
	for _, tt := range []struct {
		reason string
		phase  operatorsv1alpha1.InstallPlanPhase
		before time.Duration // how much older the Subscription is than the plan
		serves bool
		want   []string
	}{
		{reason: "the first event has expired", phase: "Installing", before: time.Second, serves: true, want: []string{"", "Installing"}},
		{reason: "it is known", phase: "", before: time.Second, serves: true, want: []string{""}},
		{reason: "the Subscription came later", phase: "Installing", before: -time.Second, serves: true, want: []string{"Installing"}},
		{reason: "the plan is somebody else's", phase: "Installing", before: time.Second, want: []string{"Installing"}},
	} {
		sub := subscription("my", "lamp")
		sub.CreationTimestamp = metav1.NewTime(noon.Add(-tt.before))
		p := installPlan("p", "lamp.v1", tt.phase, 1)
		if tt.serves {
			p = installPlan("p", "lamp.v1", tt.phase, 1, sub)
		}
		p.CreationTimestamp, p.ResourceVersion = metav1.NewTime(noon), "9"
		stages := withFirstStage([]observedStage{{version: 9, at: noon.Add(time.Minute), plan: p}}, sub)
		var got []string
		for i, s := range stages {
			got = append(got, transitionlog.StageOf(s.plan).Phase)
			if i > 0 && stages[i-1].version >= s.version {
				t.Errorf("%s: version %d before %d", tt.reason, stages[i-1].version, s.version)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.reason, diff)
		}
	}
}

func TestExpiredVersion(t *testing.T) {
	for text, want := range map[string]uint64{
		"too old resource version: 2854 (18016)": 18016,
		"too old resource version: 2854 (11)":    2854,
		"The resourceVersion is too old":         2854,
	} {
		if got := expiredVersion(errors.New(text), 2854); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
