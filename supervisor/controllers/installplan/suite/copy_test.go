package suite_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// TestACopyIsNotTheVersion has a copied version of another namespace under the name that a plan
// installs. The plan reports the copy, does not change it, and installs the version after its
// deletion.
func TestACopyIsNotTheVersion(t *testing.T) {
	for _, tt := range []struct {
		reason string
		retry  time.Duration
		phase  operatorsv1alpha1.InstallPlanPhase
	}{
		{reason: "a plan that is tried again", retry: time.Hour, phase: working},
		{reason: "a plan that was given up", retry: time.Nanosecond, phase: failed},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t)
			replica := &operatorsv1alpha1.ClusterServiceVersion{}
			if err := json.Unmarshal([]byte(w.bundle().Objects[0]), replica); err != nil {
				t.Fatal(err)
			}
			replica.Namespace, replica.Labels = w.Namespace, map[string]string{operatorsv1alpha1.CopiedLabelKey: "operators"}
			w.Create(w.group("group"), replica)
			w.plan(w.bundle(settings), true, plansteps.MaxInline)
			w.supervise(tt.retry)
			p := w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
				return p.Status.Phase == tt.phase && strings.Contains(p.Status.Message+installed(p).Message, "lamp.v1 is a copy: the operator is installed in namespace operators")
			})
			if slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool { return s.Status != operatorsv1alpha1.StepStatusUnknown }) {
				t.Errorf("steps %v, want none applied", statuses(p))
			}
			found := &operatorsv1alpha1.ClusterServiceVersion{}
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(replica), found); err != nil || found.UID != replica.UID {
				t.Errorf("the copy is not what it was: %v", err)
			}
			if tt.phase == failed {
				return
			}
			if err := w.Delete(t.Context(), replica); err != nil {
				t.Fatal(err)
			}
			p = w.reaches(complete)
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(replica), found); err != nil || found.UID == replica.UID {
				t.Errorf("the version was not made: %v; steps %v", err, statuses(p))
			}
		})
	}
}
