package approve

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// planningSupervisor is a client of a cluster whose supervisor plans the first version of a Subscription step by step, one
// for each read of the InstallPlans. It installs the version of an approved plan.
type planningSupervisor struct {
	client.Client

	steps []func(context.Context) error
}

func (s *planningSupervisor) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, is := list.(*operatorsv1alpha1.InstallPlanList); is && len(s.steps) > 0 {
		step := s.steps[0]
		s.steps = s.steps[1:]
		if err := step(ctx); err != nil {
			return err
		}
	}
	return s.Client.List(ctx, list, opts...)
}

func (s *planningSupervisor) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := s.Client.Patch(ctx, o, patch, opts...); err != nil {
		return err
	}
	version := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp.v1"}}
	version.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded
	if err := s.Create(ctx, version); err != nil {
		return err
	}
	return s.enters(operatorsv1alpha1.InstallPlanPhaseComplete)(ctx)
}

// nothing changes nothing.
func nothing(context.Context) error { return nil }

// plans creates the InstallPlan of the Subscription.
func (s *planningSupervisor) plans(ctx context.Context) error {
	p := installPlan("install-a", operatorsv1alpha1.InstallPlanPhasePlanning, false)
	p.Spec.ClusterServiceVersionNames = []string{"lamp.v1"}
	if err := s.Create(ctx, &p); err != nil {
		return err
	}
	sub := &operatorsv1alpha1.Subscription{}
	if err := s.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "lamp"}, sub); err != nil {
		return err
	}
	sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: p.Name}
	return s.Update(ctx, sub)
}

// enters returns a step that sets the phase of the InstallPlan.
func (s *planningSupervisor) enters(phase operatorsv1alpha1.InstallPlanPhase) func(context.Context) error {
	return func(ctx context.Context) error {
		p := &operatorsv1alpha1.InstallPlan{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "install-a"}, p); err != nil {
			return err
		}
		p.Status.Phase = phase
		return s.Update(ctx, p)
	}
}

// TestApproveNewSubscription approves the first InstallPlan of a Subscription, which does not exist at first.
func TestApproveNewSubscription(t *testing.T) {
	t.Parallel()
	sub := fixtures.Subscription("shop", "lamp", "lamp", "wares")
	s := &planningSupervisor{Client: fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(sub).Build()}
	s.steps = []func(context.Context) error{nothing, nothing, s.plans, s.enters(operatorsv1alpha1.InstallPlanPhaseRequiresApproval)}
	out, log, err := approveLamp(t, s, &options{wait: true, yes: true, timeout: time.Minute})
	if err != nil {
		t.Errorf("error %v", err)
	}
	const (
		wantOut = "InstallPlan shop/install-a\n  installs lamp.v1 (1)\n  objects not known yet; phase of the plan: RequiresApproval\n" +
			"InstallPlan shop/install-a is approved\n"
		wantLog = "Subscription shop/lamp has no version yet\nSubscription shop/lamp has InstallPlan install-a in phase Planning\n" +
			"InstallPlan install-a is in phase Complete\nClusterServiceVersion lamp.v1 is in phase Succeeded\n"
	)
	if out != wantOut || log != wantLog {
		t.Errorf("output %q, want %q; log %q, want %q", out, wantOut, log, wantLog)
	}
}

// TestApproveWaitDocument covers the document of --wait, which has the state at the end.
func TestApproveWaitDocument(t *testing.T) {
	t.Parallel()
	const timedOut = "timed out after 100ms (--timeout) waiting for the installation: InstallPlan install-a is in phase RequiresApproval; " +
		"'kubectl chandlery status -n shop' shows the reason"
	for name, tt := range map[string]struct {
		phase          operatorsv1alpha1.InstallPlanPhase
		code           console.Code
		outcome, fails string
	}{
		"Installed": {phase: operatorsv1alpha1.InstallPlanPhaseComplete, outcome: installed},
		"Failed":    {phase: operatorsv1alpha1.InstallPlanPhaseFailed, code: console.Negative, outcome: failed, fails: "InstallPlan install-a is in phase Failed"},
		"Timeout":   {phase: operatorsv1alpha1.InstallPlanPhaseRequiresApproval, code: console.Negative, outcome: unfinished, fails: timedOut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := fixtures.Subscription("shop", "lamp", "lamp", "wares")
			sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: "install-a"}
			plan := installPlan("install-a", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, false)
			plain := fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(sub, &plan).Build()
			c := interceptor.NewClient(plain, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
					if err := c.Patch(ctx, o, patch, options...); err != nil {
						return err
					}
					return (&planningSupervisor{Client: c}).enters(tt.phase)(ctx)
				},
			})
			out, _, err := approveLamp(t, c, &options{output: console.Output{Form: console.JSON}, wait: true, yes: true, timeout: 100 * time.Millisecond})
			code := console.Report(io.Discard, "test", err)
			var got document
			if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Plans) != 1 {
				t.Fatalf("error %v, output %s", err, out)
			}
			p := got.Plans[0]
			if p.Result != approved || p.Outcome != tt.outcome || p.Phase != string(tt.phase) || got.Problem != tt.fails || code != tt.code {
				t.Errorf("exit code %d, want %d; problem %q, want %q; %+v", code, tt.code, got.Problem, tt.fails, p)
			}
		})
	}
}

// approveLamp approves what waits for Subscription shop/lamp.
func approveLamp(t *testing.T, c client.Client, o *options) (out, log string, err error) {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	o.program, o.output.Form = "kubectl chandlery", cmp.Or(o.output.Form, console.Human)
	err = o.approve(cmd, c, "shop", []string{"lamp"})
	return stdout.String(), stderr.String(), err
}

// TestApproveWithoutPlan covers Subscriptions without an InstallPlan.
func TestApproveWithoutPlan(t *testing.T) {
	t.Parallel()
	const noPlan = "Subscription shop/lamp has no InstallPlan yet; repeat the command with --wait, " +
		"or run 'kubectl chandlery wait lamp -n shop --for approval' first"
	for name, tt := range map[string]struct {
		installed, plan string
		options         options
		code            console.Code
		out, err        string
	}{
		"New":       {code: console.Negative, err: noPlan},
		"DryRun":    {options: options{dryRun: true}, code: console.Negative, err: noPlan},
		"Deleted":   {plan: "install-a", code: console.Negative, err: noPlan},
		"Installed": {installed: "lamp.v1", out: "Subscription shop/lamp: nothing waits for approval: it has no InstallPlan\n"},
		"InstalledAndDeleted": {
			installed: "lamp.v1", plan: "install-a", options: options{wait: true, timeout: time.Minute},
			out: "Subscription shop/lamp: nothing waits for approval: its InstallPlan install-a is\n  deleted\n",
		},
		"NeverPlanned": {
			options: options{wait: true, timeout: 100 * time.Millisecond}, code: console.Negative,
			err: "timed out after 100ms (--timeout) waiting for an InstallPlan: Subscription shop/lamp has no version yet; 'kubectl chandlery status -n shop' shows the reason",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := fixtures.Subscription("shop", "lamp", "lamp", "wares")
			sub.Status.InstalledCSV, sub.Status.CurrentCSV = tt.installed, tt.installed
			if tt.plan != "" {
				sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: tt.plan}
			}
			c, _ := fixtures.RecordingClient(t, sub)
			out, _, err := approveLamp(t, c, &tt.options)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if out != tt.out || text != tt.err || console.CodeOf(err) != tt.code {
				t.Errorf("output %q, want %q; exit code %d, want %d; error %q, want %q", out, tt.out, console.CodeOf(err), tt.code, text, tt.err)
			}
		})
	}
}
