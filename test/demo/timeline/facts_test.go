package timeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func plan(phase operatorsv1alpha1.InstallPlanPhase, steps ...operatorsv1alpha1.StepStatus) *operatorsv1alpha1.InstallPlan {
	p := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Name: "install-1", UID: "1"}}
	p.Spec.ClusterServiceVersionNames = []string{"a.v1"}
	p.Spec.Approval = operatorsv1alpha1.ApprovalAutomatic
	p.Status.Phase = phase
	for _, status := range steps {
		step := &operatorsv1alpha1.Step{Status: status}
		step.Resource.Kind, step.Resource.Name = "Role", "a"
		p.Status.Plan = append(p.Status.Plan, step)
	}
	return p
}

func manual(p *operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.InstallPlan {
	p.Spec.Approval = operatorsv1alpha1.ApprovalManual
	return p
}

func subscription(state operatorsv1alpha1.SubscriptionState, installed, current string, conditions ...operatorsv1alpha1.SubscriptionCondition) *operatorsv1alpha1.Subscription {
	s := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	s.Status.State, s.Status.InstalledCSV, s.Status.CurrentCSV, s.Status.Conditions = state, installed, current, conditions
	return s
}

func csv(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason, message string) *operatorsv1alpha1.ClusterServiceVersion {
	c := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "a.v1"}}
	c.Status.Phase, c.Status.Reason, c.Status.Message = phase, reason, message
	return c
}

func catalog(state, reason string) *operatorsv1alpha1.CatalogSource {
	c := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Name: "sample"}}
	if state != "" {
		c.Status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{LastObservedState: state, Address: "h:1"}
	}
	if reason != "" {
		c.Status.Reason, c.Status.Message = operatorsv1alpha1.ConditionReason(reason), "why"
	}
	return c
}

func deployment(want *int32, updated, available int32, generation int64) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "op", Generation: generation}}
	d.Spec.Replicas = want
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: max(updated, available), UpdatedReplicas: updated, AvailableReplicas: available,
	}
	return d
}

func lease(holder *string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "lock"}}
	l.Spec.HolderIdentity = holder
	return l
}

// factCase is an object, and the lines of its facts.
type factCase struct {
	reason string
	object client.Object
	want   []Line
}

func (c factCase) check(t *testing.T) {
	t.Parallel()
	var got []Line
	for _, fact := range Facts(c.object) {
		got = append(got, fact.Line)
	}
	if diff := cmp.Diff(c.want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", c.reason, diff)
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	failed := plan(operatorsv1alpha1.InstallPlanPhaseFailed, operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusNotPresent)
	failed.Status.Conditions = []operatorsv1alpha1.InstallPlanCondition{
		{Type: operatorsv1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse, Reason: "InstallComponentFailed", Message: "forbidden"},
	}
	copied := csv(operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVReasonCopied, "")
	copied.Labels = map[string]string{operatorsv1alpha1.CopiedLabelKey: "elsewhere"}
	trouble := operatorsv1alpha1.SubscriptionCondition{
		Type: operatorsv1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue, Reason: "ErrorPreventedResolution", Message: "no such channel",
	}
	over := trouble
	over.Status = corev1.ConditionFalse
	pending := operatorsv1alpha1.SubscriptionCondition{Type: operatorsv1alpha1.SubscriptionInstallPlanPending, Status: corev1.ConditionTrue}

	for name, tc := range map[string]factCase{
		"CatalogNew":        {"nothing is known yet", catalog("", ""), nil},
		"CatalogReady":      {"the connection stands", catalog("READY", ""), []Line{{Subject: "catalog", Name: "sample", State: "READY", Detail: "h:1", Tone: Good}}},
		"CatalogConnecting": {"not there yet", catalog("CONNECTING", ""), []Line{{Subject: "catalog", Name: "sample", State: "CONNECTING", Detail: "h:1", Tone: Busy}}},
		"CatalogBroken": {"the connection failed and the spec is wrong", catalog("TRANSIENT_FAILURE", "SpecInvalidError"), []Line{
			{Subject: "catalog", Name: "sample", State: "TRANSIENT_FAILURE", Detail: "h:1", Tone: Bad},
			{Subject: "catalog", Name: "sample", State: "SpecInvalidError", Detail: "why", Tone: Bad},
		}},
		"SubscriptionNew": {"nothing was resolved", subscription("", "", ""), nil},
		"SubscriptionPending": {
			"the first version is on its way", subscription(operatorsv1alpha1.SubscriptionStateUpgradePending, "", "a.v1", pending),
			[]Line{{Subject: "subscription", Name: "a", State: "UpgradePending", Detail: "nothing installed, a.v1 to come", Tone: Busy}},
		},
		"SubscriptionLatest": {
			"what is current is installed", subscription(operatorsv1alpha1.SubscriptionStateAtLatest, "a.v1", "a.v1", over),
			[]Line{{Subject: "subscription", Name: "a", State: "AtLatestKnown", Detail: "a.v1 installed", Tone: Good}},
		},
		"SubscriptionUnresolved": {
			"conditions that hold and mean trouble are told", subscription("", "", "", trouble),
			[]Line{{Subject: "subscription", Name: "a", State: "ResolutionFailed", Detail: "ErrorPreventedResolution: no such channel", Tone: Bad}},
		},
		"PlanNew": {"a plan without a phase says nothing", plan(""), nil},
		"PlanManual": {
			"a person has to act", manual(plan(operatorsv1alpha1.InstallPlanPhaseRequiresApproval)),
			[]Line{{Subject: "plan", Name: "install-1", State: "RequiresApproval", Detail: "for a.v1, waiting for approval", Tone: Busy}},
		},
		"PlanSteps": {
			"steps that are done are told", plan(operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusUnknown, operatorsv1alpha1.StepStatusPresent),
			[]Line{
				{Subject: "plan", Name: "install-1", State: "Installing", Detail: "for a.v1", Tone: Busy},
				{Subject: StepSubject, Name: "1 of 3", State: "Created", Detail: "Role a"},
				{Subject: StepSubject, Name: "3 of 3", State: "Present", Detail: "Role a"},
			},
		},
		"PlanFailed": {
			"a failed plan says why", failed,
			[]Line{
				{Subject: StepSubject, Name: "1 of 2", State: "Created", Detail: "Role a"},
				{Subject: "plan", Name: "install-1", State: "Failed", Detail: "for a.v1", Tone: Bad},
				{Subject: "plan", Name: "install-1", State: "1 of 2", Detail: "InstallComponentFailed: forbidden", Tone: Bad},
			},
		},
		"CSVNew":    {"a CSV without a phase says nothing", csv("", "", ""), nil},
		"CSVCopied": {"copies in other namespaces are no news", copied, nil},
		"CSVInstalling": {
			"reason and message go together", csv(operatorsv1alpha1.CSVPhaseInstalling, "InstallWaiting", "waiting"),
			[]Line{{Subject: "csv", Name: "a.v1", State: "Installing", Detail: "InstallWaiting: waiting", Tone: Busy}},
		},
		"CSVFailed": {
			"a message may be missing", csv(operatorsv1alpha1.CSVPhaseFailed, "InstallCheckFailed", ""),
			[]Line{{Subject: "csv", Name: "a.v1", State: "Failed", Detail: "InstallCheckFailed", Tone: Bad}},
		},
		"Other": {"kinds that the story is not about say nothing", &corev1.Pod{}, nil},
	} {
		t.Run(name, tc.check)
	}
}

func TestDeploymentFacts(t *testing.T) {
	t.Parallel()
	zero, one := int32(0), int32(1)
	for name, tc := range map[string]factCase{
		"DeploymentWaiting": {"one replica is the default", deployment(nil, 1, 0, 1), []Line{{Subject: "deployment", Name: "op", State: "waiting", Detail: "0 of 1 available", Tone: Busy}}},
		"DeploymentReady":   {"all replicas run", deployment(&one, 1, 1, 1), []Line{{Subject: "deployment", Name: "op", State: "available", Detail: "1 of 1 available", Tone: Good}}},
		"DeploymentStale":   {"the available replica is of the generation before", deployment(&one, 1, 1, 2), []Line{{Subject: "deployment", Name: "op", State: "waiting", Detail: "1 of 1 available", Tone: Busy}}},
		"DeploymentRolling": {"the available replica is the old one", deployment(&one, 0, 1, 1), []Line{{Subject: "deployment", Name: "op", State: "waiting", Detail: "1 of 1 available", Tone: Busy}}},
		"DeploymentEnding":  {"an old replica is still there", deployment(&one, 1, 2, 1), []Line{{Subject: "deployment", Name: "op", State: "waiting", Detail: "1 of 1 available, 1 more during the update", Tone: Busy}}},
		"DeploymentNone":    {"no replica is wanted", deployment(&zero, 0, 0, 1), []Line{{Subject: "deployment", Name: "op", State: "available", Detail: "0 of 0 available", Tone: Good}}},
	} {
		t.Run(name, tc.check)
	}
}

func TestLeaseFacts(t *testing.T) {
	t.Parallel()
	holder, none := "a", ""
	for name, tc := range map[string]factCase{
		"LeaseHeld":     {"a supervisor leads", lease(&holder), []Line{{Subject: "leader", Name: "lock", State: "a", Detail: "leads", Tone: Good}}},
		"LeaseReleased": {"an empty holder does not lead", lease(&none), []Line{{Subject: "leader", Name: "lock", State: "no leader", Detail: "the lease was released", Tone: Busy}}},
		"LeaseUnset":    {"without a holder, no supervisor leads", lease(nil), []Line{{Subject: "leader", Name: "lock", State: "no leader", Detail: "the lease was released", Tone: Busy}}},
	} {
		t.Run(name, tc.check)
	}
}

func TestTracker(t *testing.T) {
	t.Parallel()
	tracker := NewTracker()
	created := operatorsv1alpha1.StepStatusCreated
	unknown := operatorsv1alpha1.StepStatusUnknown
	phase := func(at time.Duration, state string, tone Tone) Line {
		return Line{At: at, Subject: "plan", Name: "install-1", State: state, Detail: "for a.v1", Tone: tone}
	}
	step := func(at time.Duration, name string) Line {
		return Line{At: at, Subject: StepSubject, Name: name, State: "Created", Detail: "Role a"}
	}
	steps := []struct {
		reason string
		object *operatorsv1alpha1.InstallPlan
		want   []Line
	}{
		{"all is new at first", plan(operatorsv1alpha1.InstallPlanPhaseInstalling, unknown, unknown), []Line{phase(0, "Installing", Busy)}},
		{"nothing changed", plan(operatorsv1alpha1.InstallPlanPhaseInstalling, unknown, unknown), nil},
		{"only the step is new", plan(operatorsv1alpha1.InstallPlanPhaseInstalling, created, unknown), []Line{step(2, "1 of 2")}},
		{"step and phase are new", plan(operatorsv1alpha1.InstallPlanPhaseComplete, created, created), []Line{step(3, "2 of 2"), phase(3, "Complete", Good)}},
		{"going back is told as well", plan(operatorsv1alpha1.InstallPlanPhaseInstalling, created, created), []Line{phase(4, "Installing", Busy)}},
	}
	for i, s := range steps {
		if diff := cmp.Diff(s.want, tracker.Observe(s.object, time.Duration(i))); diff != "" {
			t.Errorf("step %d: %s: -want +got:\n%s", i, s.reason, diff)
		}
	}
	last := steps[len(steps)-1].object
	want := []Line{{At: 9, Subject: "plan", Name: "install-1", State: "deleted"}}
	if diff := cmp.Diff(want, tracker.Gone(last, 9)); diff != "" {
		t.Errorf("gone: -want +got:\n%s", diff)
	}
	if got := tracker.Gone(last, 10); got != nil {
		t.Errorf("gone twice: %v, want nothing", got)
	}
}
