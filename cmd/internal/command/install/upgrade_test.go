package install

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	apiversion "github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func step(plan int, bundle, version string, subscriptions ...string) dryrun.Step {
	return dryrun.Step{
		Schedule: dryrun.Schedule{Plan: plan}, Requesters: dryrun.Requesters{Subscriptions: subscriptions},
		Change: dryrun.Change{Bundle: bundle, Version: version},
	}
}

// TestPathTo covers the InstallPlans that lead to a version.
func TestPathTo(t *testing.T) {
	t.Parallel()
	steps := []dryrun.Step{
		step(1, "wick.v4", "4.0.0", "wick"), step(1, "lamp.v2", "2.0.0", "lamp"), step(2, "torch.v9", "9.0.0", "torch"), step(3, "lamp.v3", "3.0.0", "lamp"),
	}
	pending := &operatorsv1alpha1.InstallPlan{
		Spec:   operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v2", "wick.v4"}},
		Status: operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseRequiresApproval},
	}
	for name, tt := range map[string]struct {
		result  dryrun.Result
		plan    *operatorsv1alpha1.InstallPlan
		version string
		plans   []versionSet
		to      string
		err     string
	}{
		"Newest":                    {result: dryrun.Result{Steps: steps}, plans: []versionSet{{"lamp.v2", "wick.v4"}, {"lamp.v3"}}, to: "lamp.v3"},
		"Number":                    {result: dryrun.Result{Steps: steps}, version: "v2.0.0", plans: []versionSet{{"lamp.v2", "wick.v4"}}, to: "lamp.v2"},
		"Name":                      {result: dryrun.Result{Steps: steps}, version: "lamp.v2", plans: []versionSet{{"lamp.v2", "wick.v4"}}, to: "lamp.v2"},
		"None":                      {},
		"Present":                   {result: dryrun.Result{Steps: steps}, plan: pending, version: "lamp.v1"},
		"Number of the present one": {result: dryrun.Result{Steps: steps}, version: "v1.0.0"},
		"Unknown":                   {result: dryrun.Result{Steps: steps}, version: "9", err: `Subscription shop/lamp has no upgrade to version "9"; set --version to one of: 2.0.0, 3.0.0`},
		"Nothing":                   {version: "9", err: `Subscription shop/lamp has no upgrade to version "9"; no upgrade is available`},
		"Underway":                  {result: dryrun.Result{UnderWay: []dryrun.InstalledVersion{{Subscription: "lamp", Bundle: "lamp.v2", Version: "2.0.0"}}}, to: "lamp.v2"},
		"Pending": {
			result: dryrun.Result{UnderWay: []dryrun.InstalledVersion{{Subscription: "lamp", Bundle: "lamp.v2", Version: "2.0.0"}}, Steps: steps[3:]},
			plan:   pending, plans: []versionSet{{"lamp.v2", "wick.v4"}, {"lamp.v3"}}, to: "lamp.v3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp"}}
			sub.Status.InstalledCSV = "lamp.v1"
			installed := &operatorsv1alpha1.ClusterServiceVersion{}
			installed.Spec.Version = apiversion.OperatorVersion{Version: semver.MustParse("1.0.0")}
			got, err := pathTo(&tt.result, &wait.Objects{Subscription: sub, Plan: tt.plan, Installed: installed}, tt.version)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tt.plans, got.plans); diff != "" || got.to != tt.to || text != tt.err {
				t.Errorf("to %q, want %q; error %q, want %q; (-want +got):\n%s", got.to, tt.to, text, tt.err, diff)
			}
		})
	}
}

// TestEndPlan covers the plan of a command that stops at a version.
func TestEndPlan(t *testing.T) {
	t.Parallel()
	steps := []dryrun.Step{
		step(1, "lamp.v2", "2.0.0", "lamp"), step(2, "torch.v9", "9.0.0", "torch"), step(3, "wick.v4", "4.0.0", "wick"), step(3, "lamp.v3", "3.0.0", "lamp"),
	}
	for name, tt := range map[string]struct {
		version string
		want    []string
	}{
		"Earlier":   {version: "2.0.0", want: []string{"lamp.v2", "torch.v9"}},
		"Last":      {version: "3.0.0", want: []string{"lamp.v2", "torch.v9", "wick.v4", "lamp.v3"}},
		"Installed": {version: "lamp.v1", want: []string{"torch.v9"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp"}}
			sub.Status.InstalledCSV = "lamp.v1"
			way, err := pathTo(&dryrun.Result{Steps: steps}, &wait.Objects{Subscription: sub}, tt.version)
			if err != nil {
				t.Fatal(err)
			}
			res := &dryrun.Result{
				Steps: slices.Clone(steps), Refusals: []dryrun.Refusal{{Subscription: "lamp"}, {Subscription: "torch"}}, HeldBack: []dryrun.Refusal{{Subscription: "lamp"}},
			}
			endPlan(res, sub.Name, way)
			var got []string
			for i := range res.Steps {
				got = append(got, res.Steps[i].Bundle)
			}
			if len(res.HeldBack) > 0 || len(res.Refusals) != 1 || res.Refusals[0].Subscription != "torch" {
				t.Errorf("refusals %v, held back %v", res.Refusals, res.HeldBack)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreachableVersion covers the output and the error for a version to which no upgrade leads.
func TestUnreachableVersion(t *testing.T) {
	t.Parallel()
	const nothing = "Namespace shop: nothing to install"
	refusal := dryrun.Refusal{Subscription: "lamp", Package: "lamp", Stays: "lamp.v1", Reason: "version lamp.v1 has failed"}
	channel := dryrun.Refusal{Subscription: "lamp", Package: "lamp", Reason: "no channel nosuch", Remedy: "set spec.channel to one of stable", Channels: []string{"beta", "stable"}}
	other := dryrun.Refusal{Subscription: "torch", Package: "torch", Reason: "no channel", Remedy: "set spec.channel to one of stable"}
	for name, tt := range map[string]struct {
		result   dryrun.Result
		channel  string
		out, err string
	}{
		"NoReason": {result: dryrun.Result{Refusals: []dryrun.Refusal{other}}, err: `Subscription shop/lamp has no upgrade to version "2.0.0"; no upgrade is available`},
		"Failed": {
			result: dryrun.Result{Refusals: []dryrun.Refusal{refusal}}, err: console.Verdict(console.Negative).Error(),
			out: nothing + "; 1 not installed\n\nNOT INSTALLED\n  lamp, stays at lamp.v1\n      version lamp.v1 has failed\n",
		},
		"HeldBack": {
			result: dryrun.Result{HeldBack: []dryrun.Refusal{refusal}}, err: `Subscription shop/lamp has no upgrade to version "2.0.0"; no upgrade is available`,
			out: nothing + "\n\nHELD BACK FROM A NEWER VERSION\n  lamp, stays at lamp.v1\n      version lamp.v1 has failed\n",
		},
		"Channel": {
			result: dryrun.Result{Refusals: []dryrun.Refusal{channel, other}}, channel: "nosuch", err: console.Verdict(console.Negative).Error(),
			out: nothing + "; 2 not installed\n\nNOT INSTALLED\n  lamp\n      no channel nosuch\n    > set --channel to one of beta, stable\n" +
				"  torch\n      no channel\n    > set spec.channel to one of stable\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp"}, Spec: &operatorsv1alpha1.SubscriptionSpec{}}
			tt.result.Namespace = "shop"
			o := upgradeOptions{output: console.Output{Form: console.Human}, version: "2.0.0", channel: tt.channel}
			var out strings.Builder
			cmd := &cobra.Command{}
			cmd.SetOut(&out)
			err := o.upgrade(cmd, nil, &wait.Objects{Subscription: sub}, &tt.result)
			if diff := cmp.Diff(tt.out, out.String()); diff != "" || err == nil || err.Error() != tt.err {
				t.Errorf("error %v, want %q; output (-want +got):\n%s", err, tt.err, diff)
			}
		})
	}
}

// TestUnreachableVersionDocument covers the document for a version to which no upgrade leads.
func TestUnreachableVersionDocument(t *testing.T) {
	t.Parallel()
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp"}, Spec: &operatorsv1alpha1.SubscriptionSpec{}}
	o := upgradeOptions{output: console.Output{Form: console.JSON}, version: "2.0.0"}
	var out strings.Builder
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	err := o.upgrade(cmd, nil, &wait.Objects{Subscription: sub}, &dryrun.Result{Namespace: "shop"})
	if console.CodeOf(err) != console.Negative {
		t.Errorf("exit code %d: %v", console.CodeOf(err), err)
	}
	var got upgradeReport
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	const problem = `Subscription shop/lamp has no upgrade to version "2.0.0"; no upgrade is available`
	if got.Outcome != blocked || got.Problem != problem || got.Plan == nil {
		t.Errorf("%+v", got)
	}
}

// TestOutcome covers when the command has nothing to do.
func TestOutcome(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		report  upgradeReport
		changes bool
		dryRun  bool
		want    string
	}{
		"Problem":   {report: upgradeReport{Problem: "no group", To: "lamp.v2"}, dryRun: true, want: blocked},
		"DryRun":    {report: upgradeReport{To: "lamp.v2"}, dryRun: true, want: planned},
		"Unchanged": {want: unchanged},
		"Channel":   {changes: true},
		"Upgrade":   {report: upgradeReport{To: "lamp.v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := upgradeOptions{dryRun: tt.dryRun}
			if got := o.outcome(&tt.report, tt.changes); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestVersionNeedsManualApproval covers --version for a Subscription with automatic approval: only the installed version
// is accepted, and only without a change of the channel, because the new channel would install its newest version.
func TestVersionNeedsManualApproval(t *testing.T) {
	t.Parallel()
	found := &wait.Objects{Subscription: &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp"},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Channel: "stable", InstallPlanApproval: operatorsv1alpha1.ApprovalAutomatic},
		Status:     operatorsv1alpha1.SubscriptionStatus{InstalledCSV: "lamp.v1"},
	}}
	for name, tt := range map[string]struct {
		version, channel string
		code             console.Code
	}{
		"None":                   {},
		"NewChannel":             {channel: "beta"},
		"Installed":              {version: "lamp.v1"},
		"InstalledInSameChannel": {version: "lamp.v1", channel: "stable"},
		"InstalledInNewChannel":  {version: "lamp.v1", channel: "beta", code: console.Negative},
		"Other":                  {version: "lamp.v2", code: console.Negative},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&upgradeOptions{version: tt.version, channel: tt.channel}).validate(found)
			if code := console.CodeOf(err); code != tt.code {
				t.Errorf("exit code %d, want %d: %v", code, tt.code, err)
			}
		})
	}
}

// TestForbiddenApproval covers a change of the channel by users who may not approve InstallPlans.
func TestForbiddenApproval(t *testing.T) {
	t.Parallel()
	manual := func(s dryrun.Step) dryrun.Step { s.Approval = dryrun.Manual; return s }
	const missing = "nothing was changed: you lack permission to approve the InstallPlans of namespace shop; " +
		"the missing rule: {apiGroups: [operators.coreos.com], resources: [installplans], verbs: [patch]}"
	for name, tt := range map[string]struct {
		steps   []dryrun.Step
		allowed bool
		failure error
		want    string
	}{
		"Forbidden": {steps: []dryrun.Step{manual(step(1, "lamp.v2", "2.0.0", "lamp"))}, want: missing},
		"Allowed":   {steps: []dryrun.Step{manual(step(1, "lamp.v2", "2.0.0", "lamp"))}, allowed: true},
		"Unknown":   {steps: []dryrun.Step{manual(step(1, "lamp.v2", "2.0.0", "lamp"))}, failure: errAway},
		"Automatic": {steps: []dryrun.Step{step(1, "lamp.v2", "2.0.0", "lamp")}},
		"Other":     {steps: []dryrun.Step{manual(step(1, "torch.v2", "2.0.0", "torch"))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).Build(), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					review, _ := o.(*authorizationv1.SelfSubjectAccessReview)
					asked := review.Spec.ResourceAttributes
					if asked.Resource != "installplans" || asked.Verb != "patch" || asked.Namespace != "shop" {
						t.Errorf("asked for %+v", asked)
					}
					review.Status.Allowed = tt.allowed
					return tt.failure
				},
			})
			err := checkApproval(t.Context(), c, &dryrun.Result{Steps: tt.steps}, fixtures.Subscription("shop", "lamp", "lamp", "wares"))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.want || text != "" && console.CodeOf(err) != console.Forbidden {
				t.Errorf("exit code %d, error %q, want %q", console.CodeOf(err), text, tt.want)
			}
		})
	}
}

// TestFailureAfterChange covers an approval that fails after the channel was changed.
func TestFailureAfterChange(t *testing.T) {
	t.Parallel()
	plan := planOf("install-b", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, false, "lamp.v3")
	sub := fixtures.Subscription("shop", "lamp", "lamp", "wares")
	sub.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: "shop", Name: "install-b", UID: "install-b"}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: operatorsv1alpha1.GroupName, Resource: "installplans"}, "install-b", errAway)
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(sub, plan).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, is := o.(*operatorsv1alpha1.InstallPlan); is {
				return forbidden
			}
			return c.Patch(ctx, o, patch, options...)
		},
	})
	found, err := wait.Reader{Client: c, Namespace: "shop"}.Subscription(t.Context(), "lamp")
	if err != nil {
		t.Fatal(err)
	}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetErr(&strings.Builder{})
	o := upgradeOptions{channel: "beta", timeout: time.Minute}
	outcome, err := o.apply(cmd, c, found, path{plans: []versionSet{{"lamp.v3"}}, to: "lamp.v3"})
	want := "approving InstallPlan shop/install-b: " + forbidden.Error() + `; spec.channel of Subscription shop/lamp is now "beta": repeat the command to continue`
	if outcome != failed || err == nil || err.Error() != want || console.CodeOf(err) != console.Forbidden {
		t.Errorf("outcome %s, error %v, want %s", outcome, err, want)
	}
}
