package wait

import (
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
)

func csvIn(name, number string, phase operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       operatorsv1alpha1.ClusterServiceVersionSpec{Version: version.OperatorVersion{Version: semver.MustParse(number)}},
		Status:     operatorsv1alpha1.ClusterServiceVersionStatus{Phase: phase, Message: "the pod\ncrashes"},
	}
}

func planIn(phase operatorsv1alpha1.InstallPlanPhase) *operatorsv1alpha1.InstallPlan {
	return &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Name: "install-a"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v2"}},
		Status: operatorsv1alpha1.InstallPlanStatus{Phase: phase, Conditions: []operatorsv1alpha1.InstallPlanCondition{
			{Type: operatorsv1alpha1.InstallPlanInstalled, Message: "no permission"},
		}},
	}
}

// TestSubscriptionState covers each state for each goal.
func TestSubscriptionState(t *testing.T) {
	t.Parallel()
	v1 := csvIn("lamp.v1", "1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
	at := func(state operatorsv1alpha1.SubscriptionState, conditions ...operatorsv1alpha1.SubscriptionCondition) *operatorsv1alpha1.Subscription {
		return &operatorsv1alpha1.Subscription{Status: operatorsv1alpha1.SubscriptionStatus{State: state, InstalledCSV: "lamp.v1", Conditions: conditions}}
	}
	deleted := at("")
	deleted.DeletionTimestamp = new(metav1.Now())
	unresolved := operatorsv1alpha1.SubscriptionCondition{
		Type: operatorsv1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue, Reason: "ConstraintsNotSatisfiable", Message: "no package",
	}
	latest := at(operatorsv1alpha1.SubscriptionStateAtLatest)
	for name, tt := range map[string]struct {
		objects Objects
		goal    Goal
		version string
		is      string
		done    bool
		failed  bool
	}{
		"Absent":        {is: "does not exist; check the name and --namespace", done: true, failed: true},
		"Deleted":       {objects: Objects{Subscription: deleted}, is: "is being deleted", done: true, failed: true},
		"New":           {objects: Objects{Subscription: &operatorsv1alpha1.Subscription{}}, is: "has no version yet"},
		"Unresolved":    {objects: Objects{Subscription: at("", unresolved)}, is: "ConstraintsNotSatisfiable: no package"},
		"PlanFailed":    {objects: Objects{Subscription: latest, Installed: v1, Plan: planIn(operatorsv1alpha1.InstallPlanPhaseFailed)}, is: "failed: InstallPlan install-a: no permission", done: true, failed: true},
		"VersionFailed": {objects: Objects{Subscription: latest, Current: csvIn("lamp.v2", "2.0.0", operatorsv1alpha1.CSVPhaseFailed)}, is: "failed: ClusterServiceVersion lamp.v2: the pod crashes", done: true, failed: true},
		"Installing":    {objects: Objects{Subscription: latest, Current: csvIn("lamp.v2", "2.0.0", operatorsv1alpha1.CSVPhaseInstalling)}, is: "installs lamp.v2: phase Installing: the pod crashes"},
		"Installed":     {objects: Objects{Subscription: at(operatorsv1alpha1.SubscriptionStateUpgradePending), Installed: v1}, is: "has lamp.v1 installed", done: true},
		"NotLatest":     {objects: Objects{Subscription: at(operatorsv1alpha1.SubscriptionStateUpgradePending), Installed: v1}, goal: Latest, is: "has lamp.v1 installed, state UpgradePending"},
		"Latest":        {objects: Objects{Subscription: latest, Installed: v1}, goal: Latest, is: "has lamp.v1 installed", done: true},
		"ByNumber":      {objects: Objects{Subscription: latest, Installed: v1}, version: "v1.0.0", is: "has lamp.v1 installed", done: true},
		"ByName":        {objects: Objects{Subscription: latest, Installed: v1}, version: "lamp.v1", is: "has lamp.v1 installed", done: true},
		"OtherVersion":  {objects: Objects{Subscription: latest, Installed: v1}, version: "2.0.0", is: "has lamp.v1 installed, state AtLatestKnown"},
		"Pending":       {objects: Objects{Subscription: &operatorsv1alpha1.Subscription{}, Plan: planIn(operatorsv1alpha1.InstallPlanPhaseRequiresApproval)}, is: "waits for approval of InstallPlan install-a (lamp.v2)"},
		"Approval":      {objects: Objects{Subscription: latest, Installed: v1, Plan: planIn(operatorsv1alpha1.InstallPlanPhaseRequiresApproval)}, goal: Approval, is: "waits for approval of InstallPlan install-a (lamp.v2)", done: true},
		"NoApproval":    {objects: Objects{Subscription: latest, Installed: v1}, goal: Approval, is: "has lamp.v1 installed, state AtLatestKnown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.goal == "" {
				tt.goal = Installed
			}
			want := console.WaitState{Object: "Subscription shop/lamp", Is: tt.is, Done: tt.done, Failed: tt.failed}
			if diff := cmp.Diff(want, SubscriptionState("shop/lamp", &tt.objects, tt.goal, tt.version)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestInstallationState covers the states of an installation in progress.
func TestInstallationState(t *testing.T) {
	t.Parallel()
	condition := func(kind operatorsv1alpha1.SubscriptionConditionType, reason string) operatorsv1alpha1.SubscriptionCondition {
		return operatorsv1alpha1.SubscriptionCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason}
	}
	pending := condition(operatorsv1alpha1.SubscriptionInstallPlanPending, "Installing")
	stopped := condition(operatorsv1alpha1.SubscriptionResolutionFailed, "ErrorPreventedResolution")
	plan := func(phase operatorsv1alpha1.InstallPlanPhase, steps ...operatorsv1alpha1.StepStatus) *operatorsv1alpha1.InstallPlan {
		p := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Name: "install-a"}, Status: operatorsv1alpha1.InstallPlanStatus{Phase: phase}}
		for i, status := range steps {
			resource := operatorsv1alpha1.StepResource{Kind: "ServiceAccount", Name: string(rune('a' + i))}
			p.Status.Plan = append(p.Status.Plan, &operatorsv1alpha1.Step{Status: status, Resource: resource})
		}
		return p
	}
	retrying := plan(operatorsv1alpha1.InstallPlanPhaseInstalling)
	retrying.Status.Message = "retrying execution due to error: no permission"
	const created, unknown, installing = operatorsv1alpha1.StepStatusCreated, operatorsv1alpha1.StepStatusUnknown, operatorsv1alpha1.InstallPlanPhaseInstalling
	csv := csvIn("lamp.v2", "2.0.0", operatorsv1alpha1.CSVPhasePending)
	csv.Status.Reason, csv.Status.Message = operatorsv1alpha1.CSVReasonRequirementsNotMet, "no APIs"
	const progress = "installs lamp.v2: phase Pending, RequirementsNotMet: no APIs"
	for name, tt := range map[string]struct {
		condition operatorsv1alpha1.SubscriptionCondition
		plan      *operatorsv1alpha1.InstallPlan
		csv       *operatorsv1alpha1.ClusterServiceVersion
		want      string
	}{
		"NoPlan":     {condition: pending, want: "Installing"},
		"Planning":   {condition: pending, plan: plan(operatorsv1alpha1.InstallPlanPhasePlanning), want: "has InstallPlan install-a in phase Planning"},
		"Steps":      {condition: pending, plan: plan(installing, created, unknown, unknown), want: "has InstallPlan install-a in phase Installing, 1 of 3 steps done, next is ServiceAccount b"},
		"LastStep":   {condition: pending, plan: plan(installing, created), want: "has InstallPlan install-a in phase Installing, 1 of 1 steps done"},
		"Retrying":   {condition: pending, plan: retrying, want: "has InstallPlan install-a in phase Installing: retrying execution due to error: no permission"},
		"Both":       {condition: pending, plan: plan(installing, created), csv: csv, want: "has InstallPlan install-a in phase Installing, 1 of 1 steps done; " + progress},
		"Version":    {plan: plan(operatorsv1alpha1.InstallPlanPhaseComplete, created), csv: csv, want: progress},
		"Deprecated": {condition: condition(operatorsv1alpha1.SubscriptionDeprecated, "Deprecated"), csv: csv, want: progress},
		"Stopped":    {condition: stopped, csv: csv, want: "ErrorPreventedResolution"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := &operatorsv1alpha1.Subscription{Status: operatorsv1alpha1.SubscriptionStatus{Conditions: []operatorsv1alpha1.SubscriptionCondition{tt.condition}}}
			o := Objects{Subscription: sub, Plan: tt.plan, Current: tt.csv}
			if got := SubscriptionState("shop/lamp", &o, Installed, ""); got.Is != tt.want || got.Done {
				t.Errorf("got %q, want %q", got.Is, tt.want)
			}
		})
	}
}

func TestCatalogState(t *testing.T) {
	t.Parallel()
	type change func(*operatorsv1alpha1.CatalogSource)
	source := func(state string, changes ...change) *operatorsv1alpha1.CatalogSource {
		s := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Name: "wares", Generation: 2}}
		s.Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: "wares:v1"}
		s.Status.Reason, s.Status.Message = operatorsv1alpha1.CatalogSourceSpecInvalidError, "image is unset"
		if state != "" {
			s.Status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{LastObservedState: state}
		}
		for _, c := range changes {
			c(s)
		}
		return s
	}
	unset := func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Image = "" }
	progressing := func(reason string, generation int64) change {
		return func(s *operatorsv1alpha1.CatalogSource) {
			s.Status.Conditions = []metav1.Condition{{Type: api.ConditionProgressing, Reason: reason, ObservedGeneration: generation}}
		}
	}
	unreachable := func(s *operatorsv1alpha1.CatalogSource) {
		s.Status.Reason = operatorsv1alpha1.CatalogSourceRegistryServerError
	}
	const invalid, unread = "has connection state none yet, SpecInvalidError: image is unset", "has connection state none yet, RegistryServerError: image is unset"
	for name, tt := range map[string]struct {
		source *operatorsv1alpha1.CatalogSource
		want   console.WaitState
	}{
		"Absent":     {want: console.WaitState{Is: "does not exist; check the name and --namespace", Done: true, Failed: true}},
		"Starting":   {source: source(""), want: console.WaitState{Is: invalid}},
		"RollingOut": {source: source("", progressing(api.ReasonRollingOut, 2)), want: console.WaitState{Is: invalid}},
		"Corrected":  {source: source("", progressing(api.ReasonBlocked, 1)), want: console.WaitState{Is: invalid}},
		"Blocked":    {source: source("", progressing(api.ReasonBlocked, 2)), want: console.WaitState{Is: invalid, Done: true, Failed: true}},
		"Invalid":    {source: source("", unset), want: console.WaitState{Is: invalid, Done: true, Failed: true}},
		"Unread":     {source: source("", unset, unreachable), want: console.WaitState{Is: unread}},
		"Serves":     {source: source("READY", unset), want: console.WaitState{Is: "has connection state READY", Done: true}},
		"Connecting": {source: source("CONNECTING"), want: console.WaitState{Is: "has connection state CONNECTING, SpecInvalidError: image is unset"}},
		"Ready":      {source: source("READY"), want: console.WaitState{Is: "has connection state READY", Done: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.Object = "CatalogSource olm/wares"
			if diff := cmp.Diff(tt.want, CatalogState("olm/wares", tt.source)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestArguments covers arguments and flags that cannot be used together.
func TestArguments(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args    []string
		goal    Goal
		version string
		want    string
	}{
		"Kinds":           {args: []string{"a", "sub/b", "Subscription.operators.coreos.com/c"}, goal: Latest, version: "1.0.0"},
		"Catalog":         {args: []string{"catalog/a", "catalogsource/b"}, goal: Installed},
		"OtherKind":       {args: []string{"csv/a"}, want: `argument "csv/a" names no object; write NAME for a Subscription, or catalogsource/NAME`},
		"NoName":          {args: []string{"sub/"}, want: `argument "sub/" names no object; write NAME for a Subscription, or catalogsource/NAME`},
		"OtherGoal":       {args: []string{"a"}, goal: "gone", want: `--for is "gone"; it has to be one of installed, latest, approval`},
		"CatalogGoal":     {args: []string{"catalog/a"}, goal: Latest, want: "--for and --version apply to Subscriptions only; wait for catalogs in a call of their own"},
		"CatalogVersion":  {args: []string{"catalog/a"}, goal: Installed, version: "1", want: "--for and --version apply to Subscriptions only; wait for catalogs in a call of their own"},
		"ApprovalVersion": {args: []string{"a"}, goal: Approval, version: "1", want: "--version and --for=approval exclude each other: nothing is installed before the approval"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options{goal: string(tt.goal), version: tt.version}
			objects, err := parseObjects(tt.args)
			if err == nil {
				err = o.validate(objects)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
