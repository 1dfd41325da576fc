package installplan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

const (
	phaseNone             = operatorsv1alpha1.InstallPlanPhaseNone
	phasePlanning         = operatorsv1alpha1.InstallPlanPhasePlanning
	phaseRequiresApproval = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	phaseInstalling       = operatorsv1alpha1.InstallPlanPhaseInstalling
	phaseComplete         = operatorsv1alpha1.InstallPlanPhaseComplete
	phaseFailed           = operatorsv1alpha1.InstallPlanPhaseFailed
)

func planOf(phase operatorsv1alpha1.InstallPlanPhase, approved bool, statuses ...operatorsv1alpha1.StepStatus) *operatorsv1alpha1.InstallPlan {
	p := &operatorsv1alpha1.InstallPlan{Spec: operatorsv1alpha1.InstallPlanSpec{Approved: approved}, Status: operatorsv1alpha1.InstallPlanStatus{Phase: phase}}
	for _, status := range statuses {
		p.Status.Plan = append(p.Status.Plan, &operatorsv1alpha1.Step{Status: status, Resolving: "lamp.v1", Resource: operatorsv1alpha1.StepResource{Kind: "ConfigMap", Name: "settings", Version: "v1"}})
	}
	return p
}

func TestNextPhase(t *testing.T) {
	const unknown = operatorsv1alpha1.StepStatusUnknown
	for _, tt := range []struct {
		reason string
		plan   *operatorsv1alpha1.InstallPlan
		want   operatorsv1alpha1.InstallPlanPhase
		ok     bool
	}{
		{reason: "it has no steps yet", plan: planOf(phaseNone, true)},
		{reason: "it has no steps yet", plan: planOf(phasePlanning, true)},
		{reason: "approved from the first", plan: planOf(phasePlanning, true, unknown), want: phaseInstalling, ok: true},
		{reason: "approved from the first, created by another client", plan: planOf(phaseNone, true, unknown), want: phaseInstalling, ok: true},
		{reason: "to be approved", plan: planOf(phasePlanning, false, unknown), want: phaseRequiresApproval, ok: true},
		{reason: "not yet approved", plan: planOf(phaseRequiresApproval, false, unknown)},
		{reason: "approved", plan: planOf(phaseRequiresApproval, true, unknown), want: phaseInstalling, ok: true},
		{reason: "in progress", plan: planOf(phaseInstalling, true, unknown)},
		{reason: "in progress, and no longer approved", plan: planOf(phaseInstalling, false, unknown)},
		{reason: "done", plan: planOf(phaseComplete, true, unknown)},
		{reason: "failed", plan: planOf(phaseFailed, true, unknown)},
	} {
		phase, ok := nextPhase(tt.plan)
		if ok != tt.ok || (ok && phase != tt.want) {
			t.Errorf("from %q approved %v: %q, %v; want %q, %v: %s", tt.plan.Status.Phase, tt.plan.Spec.Approved, phase, ok, tt.want, tt.ok, tt.reason)
		}
	}
}

var (
	errNoMatch = &apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "gone.example", Kind: "Gone"}, SearchedVersions: []string{"v1"}}
	configMaps = schema.GroupResource{Resource: "configmaps"}
)

func TestTerminal(t *testing.T) {
	const timeout = time.Minute
	for _, tt := range []struct {
		err          error
		before, then bool // within and after the retry window
	}{
		{err: errUnsupported, before: true, then: true},
		{err: plansteps.ErrContentChanged, before: true, then: true},
		{err: plansteps.ErrNoInlineManifests, before: true, then: true},
		{err: errNoMatch, then: true},
		{err: errNamesRefused, then: true},
		{err: apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "settings", nil), then: true},
		{err: apierrors.NewBadRequest("no"), then: true},
		{err: apierrors.NewRequestEntityTooLargeError("no"), then: true},
		{err: apierrors.NewMethodNotSupported(configMaps, "patch"), then: true},
		{err: apierrors.NewForbidden(configMaps, "settings", errors.New("no"))},
		{err: apierrors.NewTimeoutError("no", 1)},
		{err: apierrors.NewInternalError(errors.New("webhook"))},
		{err: apierrors.NewConflict(configMaps, "settings", errors.New("no"))},
		{err: errOwnerDeleted},
		{err: context.DeadlineExceeded},
	} {
		wrapped := &stepError{step: planOf(phaseInstalling, true, "").Status.Plan[0], err: fmt.Errorf("applying: %w", tt.err)}
		if before, then := terminal(wrapped, timeout-1, timeout), terminal(wrapped, timeout, timeout); before != tt.before || then != tt.then {
			t.Errorf("%v ends a plan at once: %v, after the window: %v; want %v, %v", tt.err, before, then, tt.before, tt.then)
		}
	}
}

func TestStepErrorNamesTheStep(t *testing.T) {
	step := planOf(phaseInstalling, true, "").Status.Plan[0]
	if got := (&stepError{step: step, err: errUnsupported}).Error(); !strings.Contains(got, "error applying ConfigMap settings of lamp.v1: the InstallPlan contains invalid data: bundles cannot contain") {
		t.Error(got)
	}
	step.Resource.Group, step.Resource.Kind = "gone.example", "Gone"
	want := "api-server resource not found installing Gone settings: GroupVersionKind gone.example/v1, Kind=Gone not found on the cluster."
	if got := (&stepError{step: step, err: errNoMatch}).Error(); !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}

// TestMissingKind checks the message about a kind that the cluster lacks, with and without its API group.
func TestMissingKind(t *testing.T) {
	step := planOf(phaseInstalling, true, "").Status.Plan[0]
	step.Resource.Group, step.Resource.Kind = "gone.example", "Gone"
	odd := errors.New("odd")
	for name, tt := range map[string]struct {
		err, answer error
		want        string
	}{
		"Kind":    {fmt.Errorf("creating: %w", errNoMatch), nil, "Unable to find GVK in discovery: gone.example v1 Gone"},
		"Group":   {errNoMatch, apierrors.NewNotFound(schema.GroupResource{}, ""), "api-server resource not found installing Gone settings: "},
		"Unknown": {errNoMatch, odd, "error applying Gone settings of lamp.v1: odd"},
		"Other":   {odd, nil, "error applying Gone settings of lamp.v1: odd"},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := listKinds(func(context.Context, string) (*metav1.APIResourceList, error) { return nil, tt.answer })
			if got := (&stepError{step: step, err: kinds.explain(t.Context(), tt.err)}).Error(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEstablished(t *testing.T) {
	condition := func(kind, status string) any { return map[string]any{"type": kind, "status": status} }
	for _, tt := range []struct {
		reason     string
		conditions []any
		want       bool
	}{
		{reason: "nothing is said yet"},
		{reason: "names only", conditions: []any{condition("NamesAccepted", "True")}},
		{reason: "names are taken", conditions: []any{condition("NamesAccepted", "False"), condition("Established", "True")}},
		{reason: "both", conditions: []any{condition("NamesAccepted", "True"), condition("Established", "True")}, want: true},
		{reason: "others do not count", conditions: []any{condition("NamesAccepted", "True"), condition("Terminating", "True"), "nonsense"}},
	} {
		crd := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": tt.conditions}}}
		if got := established(crd); got != tt.want {
			t.Errorf("%s: %v", tt.reason, got)
		}
	}
	if established(&unstructured.Unstructured{Object: map[string]any{}}) {
		t.Error("a definition without status is established")
	}
}

func TestCRDStatus(t *testing.T) {
	const waiting, created = operatorsv1alpha1.StepStatusWaitingForAPI, operatorsv1alpha1.StepStatusCreated
	condition := func(kind, status, message string) any {
		return map[string]any{"type": kind, "status": status, "message": message}
	}
	for _, tt := range []struct {
		reason     string
		conditions []any
		want       operatorsv1alpha1.StepStatus
		err        string
	}{
		{reason: "nothing is said yet", want: waiting},
		{reason: "accepted", conditions: []any{condition("NamesAccepted", "True", "")}, want: waiting},
		{reason: "served", conditions: []any{condition("NamesAccepted", "True", ""), condition("Established", "True", "")}, want: created},
		{
			reason: "refused", conditions: []any{condition("Established", "False", "not all names are accepted"), condition("NamesAccepted", "False", `"Lamp" is already in use`)},
			err: `its names are not accepted: "Lamp" is already in use; remove the CustomResourceDefinition that has them, or ask for a bundle whose CustomResourceDefinition lamps.example has other names`,
		},
	} {
		crd := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": tt.conditions}}}
		crd.SetName("lamps.example")
		got, err := crdStatus(crd, created, nil)
		if got != tt.want || (err == nil) != (tt.err == "") || (err != nil && (err.Error() != tt.err || !errors.Is(err, errNamesRefused))) {
			t.Errorf("%s: %q, %v", tt.reason, got, err)
		}
	}
}

var begin = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(minute int) metav1.Time {
	return metav1.NewTime(begin.Add(time.Duration(minute) * time.Minute))
}

func TestSetInstalled(t *testing.T) {
	const check = operatorsv1alpha1.InstallPlanReasonInstallCheckFailed
	p := planOf(phaseInstalling, true)
	setInstalled(p, check, "no group", at(0))
	first := p.Status.DeepCopy()
	setInstalled(p, check, "no group", at(5))
	if diff := cmp.Diff(*first, p.Status); diff != "" {
		t.Errorf("the same condition again changed the status:\n%s", diff)
	}
	setInstalled(p, check, "two groups", at(5))
	if c := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled); c.Message != "two groups" || c.Status != "False" || c.Reason != check || !c.LastUpdateTime.Time.Equal(at(5).Time) {
		t.Errorf("condition %+v", c)
	}
	removeInstalled(p, check)
	if len(p.Status.Conditions) != 0 {
		t.Errorf("after the check: %+v", p.Status.Conditions)
	}
	setInstalled(p, operatorsv1alpha1.InstallPlanReasonComponentFailed, "no", at(6))
	removeInstalled(p, check)
	if len(p.Status.Conditions) != 1 {
		t.Error("the check removed the condition of a failure")
	}
	setInstalled(p, "", "", at(7))
	if c := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled); c.Status != "True" || c.Reason != "" || c.Message != "" || len(p.Status.Conditions) != 1 {
		t.Errorf("conditions %+v", p.Status.Conditions)
	}
}

// TestAdvanceClearsMessage checks that a plan that waits for its approval has no message, as with OLM.
func TestAdvanceClearsMessage(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := operatorsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}
	r := &reconciler{clock: clock.RealClock{}, client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(group).Build()}
	for _, tt := range []struct {
		reason string
		plan   *operatorsv1alpha1.InstallPlan
	}{
		{reason: "to be approved", plan: planOf(phasePlanning, false, "")},
		{reason: "waiting already, with the message of a former release", plan: planOf(phaseRequiresApproval, false, "")},
		{reason: "approved", plan: planOf(phaseRequiresApproval, true, "")},
		{reason: "approved from the first", plan: planOf(phasePlanning, true, "")},
	} {
		tt.plan.Namespace, tt.plan.Status.Message = group.Namespace, "the InstallPlan needs approval"
		if _, err := r.advance(t.Context(), tt.plan, &planRecord{}); err != nil || tt.plan.Status.Message != "" {
			t.Errorf("%s: message %q, error %v", tt.reason, tt.plan.Status.Message, err)
		}
	}
	for _, phase := range []operatorsv1alpha1.InstallPlanPhase{phaseFailed, phaseComplete} {
		p := planOf(phase, true, operatorsv1alpha1.StepStatusCreated)
		if _, err := r.advance(t.Context(), p, &planRecord{}); err != nil || p.Status.Phase != phase {
			t.Errorf("a plan that another client declared %s is %s, error %v", phase, p.Status.Phase, err)
		}
	}
}

// TestApprovedPlanWaitsForAGroup approves a plan in a namespace without an OperatorGroup. It stays in its phase.
func TestApprovedPlanWaitsForAGroup(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := operatorsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &reconciler{clock: clock.RealClock{}, client: fake.NewClientBuilder().WithScheme(scheme).Build()}
	p := planOf(phaseRequiresApproval, true, "")
	if _, err := r.advance(t.Context(), p, &planRecord{}); err != nil || p.Status.Phase != phaseRequiresApproval {
		t.Errorf("phase %s, error %v", p.Status.Phase, err)
	}
	if got := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled); got.Message != olmtext.NoGroupForPlan {
		t.Errorf("condition %+v", got)
	}
}

func TestConclude(t *testing.T) {
	const created, present, waiting = operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusPresent, operatorsv1alpha1.StepStatusWaitingForAPI
	const settingsFailed = "retrying execution due to error: error applying ConfigMap settings of lamp.v1: "
	for _, tt := range []struct {
		reason    string
		plan      *operatorsv1alpha1.InstallPlan
		err       error
		failing   bool // a step failed in the pass before
		failed    int  // the index of that step
		minute    int
		phase     operatorsv1alpha1.InstallPlanPhase
		message   string
		installed string
		started   int // the minute of StartTime, when it moves
		after     time.Duration
	}{
		{reason: "all is done", plan: planOf(phaseInstalling, true, created, present), phase: phaseComplete, installed: "True "},
		{reason: "an API is not served yet", plan: planOf(phaseInstalling, true, created, waiting), phase: phaseInstalling, after: waitForAPI},
		{reason: "what passes is tried again for ever", plan: planOf(phaseInstalling, true, ""), err: apierrors.NewTimeoutError("slow", 1), minute: 90, started: 90, phase: phaseInstalling, message: settingsFailed, after: firstPause},
		{reason: "what lasts is tried again for a while", plan: planOf(phaseInstalling, true, ""), err: apierrors.NewBadRequest("odd"), phase: phaseInstalling, message: settingsFailed, after: firstPause},
		{reason: "what lasts ends the plan", plan: planOf(phaseInstalling, true, ""), err: apierrors.NewBadRequest("odd"), failing: true, minute: 1, phase: phaseFailed, message: "error applying ConfigMap settings of lamp.v1: ", installed: "False InstallComponentFailed"},
		{reason: "a step that fails for the first time is tried again for a while, however late", plan: planOf(phaseInstalling, true, created, ""), err: apierrors.NewBadRequest("odd"), minute: 90, phase: phaseInstalling, message: settingsFailed, started: 90, after: firstPause},
		{reason: "so is one after another that failed", plan: planOf(phaseInstalling, true, created, ""), err: apierrors.NewBadRequest("odd"), failing: true, minute: 90, phase: phaseInstalling, message: settingsFailed, started: 90, after: firstPause},
		{reason: "its window does not move while it fails", plan: planOf(phaseInstalling, true, created, ""), err: apierrors.NewTimeoutError("slow", 1), failing: true, failed: 1, minute: 90, phase: phaseInstalling, message: settingsFailed, after: firstPause},
		{reason: "what cannot be fixed ends it at once", plan: planOf(phaseInstalling, true, ""), err: errUnsupported, phase: phaseFailed, message: "error applying ConfigMap settings of lamp.v1: ", installed: "False InstallComponentFailed"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			r := &reconciler{retryTimeout: time.Minute}
			rec := &planRecord{}
			start := at(0)
			tt.plan.Status.StartTime, tt.plan.Status.Message = &start, "from the pass before"
			if tt.failing {
				api.SetCause(tt.plan, &api.Cause{Reason: api.ReasonStepFailed, Step: new(tt.failed)})
			}
			var err *stepError
			if tt.err != nil {
				steps := tt.plan.Status.Plan
				err = &stepError{step: steps[len(steps)-1], err: tt.err}
			}
			result := r.conclude(t.Context(), tt.plan, rec, err, at(tt.minute))
			status := tt.plan.Status
			if status.Phase != tt.phase || !strings.HasPrefix(status.Message, tt.message) || (tt.message == "" && status.Message != "") {
				t.Errorf("phase %q, message %q; want %q, %q", status.Phase, status.Message, tt.phase, tt.message)
			}
			// Complete plans keep StartTime: only a step that begins to fail changes it.
			if want := at(tt.started); tt.err != nil && tt.phase == phaseInstalling && !status.StartTime.Equal(&want) {
				t.Errorf("started at %s, want %s", status.StartTime, want)
			}
			installed := ""
			if c := status.GetCondition(operatorsv1alpha1.InstallPlanInstalled); c.Status != "Unknown" {
				installed = string(c.Status) + " " + string(c.Reason)
				if (c.Message == "") != (tt.err == nil) || (err != nil && c.Message != err.Error()+remedyFor(err)) {
					t.Errorf("message of the condition: %q", c.Message)
				}
			}
			// Pauses are up to a fifth longer or shorter.
			if installed != tt.installed || (result.RequeueAfter-tt.after).Abs() > tt.after/5 {
				t.Errorf("Installed %q, again after %s; want %q, %s", installed, result.RequeueAfter, tt.installed, tt.after)
			}
		})
	}
}
