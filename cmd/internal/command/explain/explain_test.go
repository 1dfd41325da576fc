package explain

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
)

func ref(kind, name string) explain.Ref {
	return explain.Ref{Kind: kind, Namespace: "shop", Name: name}
}

// broken is a Subscription whose pod cannot pull its image. healthy is a Subscription without problems.
func broken() explain.Explanation {
	pod := ref(explain.KindPod, "lamp-1")
	f := explain.Finding{
		Code: explain.CodeImagePullFailed, Object: pod, Severity: explain.Wrong, Cause: pod.String() + ": image x cannot be pulled: not found",
		Chain: []explain.Link{
			{Object: ref(explain.KindSubscription, "lamp"), State: "UpgradePending"},
			{Object: ref(explain.KindDeployment, "lamp"), State: "0/1", Message: strings.Repeat("minimum ", 20)},
			{Object: pod, State: "Pending"},
		},
		Remedy: "See that the image exists.", Commands: []string{"kubectl -n shop describe pod lamp-1"},
	}
	note := explain.Finding{Code: explain.CodeDeprecated, Severity: explain.Note, Cause: "it is old", Remedy: "Buy another."}
	return explain.Explanation{Subject: ref(explain.KindSubscription, "lamp"), State: explain.Broken, Summary: f.Cause, Findings: []explain.Finding{f, note}}
}

func healthy() explain.Explanation {
	return explain.Explanation{Subject: ref(explain.KindSubscription, "wick"), State: explain.Healthy, Summary: "wick.v1 is installed"}
}

// waiting is a Subscription whose InstallPlan waits for approval.
func waiting() explain.Explanation {
	plan := ref(explain.KindInstallPlan, "install-a")
	f := explain.Finding{
		Code: explain.CodePlanNeedsApproval, Object: plan, Severity: explain.Waiting, Cause: plan.String() + " waits for approval",
		Remedy: "Approve it.", Commands: []string{"kubectl chandlery approve install-a -n shop"},
	}
	return explain.Explanation{Subject: ref(explain.KindSubscription, "lamp"), State: explain.Held, Summary: f.Cause, Findings: []explain.Finding{f}}
}

func inconclusive() explain.Explanation {
	return explain.Explanation{
		Subject: ref(explain.KindSubscription, "torch"), State: explain.Unknown, Summary: "torch.v1 is installed, as far as can be seen",
		Unreadable: []explain.Unreadable{{Resource: "pods", Namespace: "shop", Reason: explain.UnreadableForbidden}},
	}
}

// resting is a healthy Subscription as seen by a user who may not read the Lease.
func resting() explain.Explanation {
	e := healthy()
	e.Unreadable = []explain.Unreadable{{Resource: "leases.coordination.k8s.io", Reason: explain.UnreadableForbidden, Minor: true}}
	return e
}

// answerTests are the cases of TestAnswer.
var answerTests = []struct {
	reason string
	answer answer
	code   console.Code
	// text is the human-readable form.
	text string
}{
	{
		reason: "what is named is told of, the cause first", answer: answer{named: true, Explanations: []explain.Explanation{broken()}}, code: console.Negative,
		text: `Subscription shop/lamp: wrong: Pod shop/lamp-1: image x cannot be pulled: not found

  Subscription shop/lamp  UpgradePending
  └> Deployment shop/lamp  0/1  ` + strings.Repeat("minimum ", 5) + `minimum…
     └> Pod shop/lamp-1  Pending

  To do: See that the image exists.
    kubectl -n shop describe pod lamp-1

Also: note: it is old

  To do: Buy another.
`,
	},
	{
		reason: "what waits is no more wrong than status says", answer: answer{named: true, Explanations: []explain.Explanation{waiting()}}, code: console.Fine,
		text: "Subscription shop/lamp: waiting: InstallPlan shop/install-a waits for approval\n\n  To do: Approve it.\n    supervisor approve install-a -n shop\n",
	},
	{
		reason: "what waits may be wrong where not all can be seen", code: console.Forbidden,
		answer: answer{named: true, Explanations: []explain.Explanation{func() explain.Explanation {
			e := waiting()
			e.Findings, e.Unreadable = nil, inconclusive().Unreadable
			return e
		}()}},
		text: `Subscription shop/lamp: waiting: InstallPlan shop/install-a waits for approval

Could not be read, and may contain a cause:
  pods in namespace shop: you lack permission to read them; this role grants it when it is bound to you:
    kubectl -n shop create role read-pods --verb=get,list --resource=pods
`,
	},
	{
		reason: "what is named is told of though it is well", answer: answer{named: true, Explanations: []explain.Explanation{healthy()}}, code: console.Fine,
		text: "Subscription shop/wick: healthy: wick.v1 is installed\n",
	},
	{
		reason: "where none is named, those that are well are counted", answer: answer{namespace: "shop", Explanations: []explain.Explanation{healthy(), healthy()}}, code: console.Fine,
		text: "All 2 Subscriptions in namespace shop are healthy or in progress.\n",
	},
	{
		reason: "what could not be seen is named with its rule", answer: answer{namespace: "shop", Explanations: []explain.Explanation{healthy(), inconclusive()}}, code: console.Forbidden,
		text: `All 2 Subscriptions in namespace shop seem to be healthy or in progress; some objects could not be read.

Could not be read, and may contain a cause:
  pods in namespace shop: you lack permission to read them; this role grants it when it is bound to you:
    kubectl -n shop create role read-pods --verb=get,list --resource=pods
`,
	},
	{
		reason: "what could not be seen and is not needed is no more than a note", answer: answer{named: true, Explanations: []explain.Explanation{resting()}}, code: console.Fine,
		text: `Subscription shop/wick: healthy: wick.v1 is installed

You lack permission to read leases.coordination.k8s.io; this relies on statuses.
`,
	},
	{
		reason: "nobody to tell of", answer: answer{everywhere: true}, code: console.Fine,
		text: "There is no Subscription in the cluster.\n",
	},
	{
		reason: "Subscriptions that may not be listed", answer: answer{namespace: "shop", Unreadable: []explain.Unreadable{{Resource: "subscriptions.operators.coreos.com", Reason: explain.UnreadableForbidden}}}, code: console.Forbidden,
		text: `No Subscription in namespace shop is visible.

Could not be read, and may contain a cause:
  subscriptions.operators.coreos.com: you lack permission to read them; this role grants it when it is bound to you:
    kubectl create clusterrole read-subscriptions --verb=get,list --resource=subscriptions.operators.coreos.com
`,
	},
	{
		reason: "an API that is not there", answer: answer{namespace: "shop", missing: true}, code: console.Negative,
		text: "The API of Subscriptions is not installed in this cluster: kubectl apply --server-side -f prerequisites.yaml\n",
	},
	{
		reason: "a namespace instead of all", answer: answer{everywhere: true, Fallback: "shop", Explanations: []explain.Explanation{healthy()}}, code: console.Forbidden,
		text: "The only Subscription in namespace shop (you lack permission to list others) is healthy or in progress.\n",
	},
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, tc := range answerTests {
		if code := tc.answer.code(); code != tc.code {
			t.Errorf("%s: code %d, want %d", tc.reason, code, tc.code)
		}
		if got := printed(t, console.Human, &tc.answer); got != tc.text {
			t.Errorf("%s: printed\n%s\nwant\n%s", tc.reason, got, tc.text)
		}
	}
}

func printed(t *testing.T, form string, a *answer) string {
	t.Helper()
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	o := options{program: "supervisor"}
	o.output.AddFlags(cmd)
	o.output.Form = form
	if err := o.print(cmd, a); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestForms checks that the wide form shows everything, and that the machine-readable forms hold
// the explanations.
func TestForms(t *testing.T) {
	t.Parallel()
	a := &answer{named: true, Explanations: []explain.Explanation{broken()}}
	wide := printed(t, console.Wide, a)
	for _, words := range []string{"code ImagePullFailed", strings.TrimSpace(strings.Repeat("minimum ", 20))} {
		if !strings.Contains(wide, words) {
			t.Errorf("the wide form lacks %q:\n%s", words, wide)
		}
	}
	var document struct{ Explanations []explain.Explanation }
	if err := json.Unmarshal([]byte(printed(t, console.JSON, a)), &document); err != nil || len(document.Explanations) != 1 || document.Explanations[0].Findings[0].Code != explain.CodeImagePullFailed {
		t.Errorf("as JSON: %+v, %v", document, err)
	}
}

// TestForeignLines checks that a line feed in text from the cluster begins no line.
func TestForeignLines(t *testing.T) {
	t.Parallel()
	const says = "failed\n  To do: Run this."
	e := broken()
	e.Summary = says
	e.Findings[0].Chain[2].Message, e.Findings[0].Remedy, e.Findings[1].Cause = says, says, says
	e.Unreadable = []explain.Unreadable{{Resource: "pods", Message: says}}
	for _, form := range []string{console.Human, console.Wide} {
		text := printed(t, form, &answer{named: true, Explanations: []explain.Explanation{e}})
		if strings.Contains(text, "\n  To do: Run this.") {
			t.Errorf("%s: a foreign text begins a line:\n%s", form, text)
		}
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, arg string
		want        explain.Ref
		everywhere  bool
		refused     string
	}{
		{reason: "a name alone", arg: "lamp", want: ref(explain.KindSubscription, "lamp")},
		{reason: "a short type", arg: "csv/lamp.v1", want: ref(explain.KindVersion, "lamp.v1")},
		{reason: "a type as kubectl prints it", arg: "catalogsource.operators.coreos.com/wares", want: ref(explain.KindCatalogSource, "wares")},
		{reason: "another type", arg: "pod/lamp-1", refused: `"pod/lamp-1" cannot be explained`},
		{reason: "no name", arg: "csv/", refused: "cannot be explained"},
		{reason: "a name in all namespaces", arg: "lamp", everywhere: true, refused: "--all-namespaces explains everything"},
	} {
		o := options{everywhere: tc.everywhere}
		got, err := o.subjects("shop", []string{tc.arg})
		if tc.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.refused)
			}
			continue
		}
		if err != nil || got[0] != tc.want {
			t.Errorf("%s: %v, %v; want %v", tc.reason, got, err, tc.want)
		}
	}
}

// TestNarrow checks that only a terminal wraps the cause, and that commands are never wrapped.
func TestNarrow(t *testing.T) {
	t.Parallel()
	a := answer{named: true, Explanations: []explain.Explanation{waiting()}}
	a.Explanations[0].Summary = strings.Repeat("lantern ", 20)
	a.Explanations[0].Findings[0].Remedy = strings.Repeat("approve ", 15)
	a.Explanations[0].Findings[0].Commands = []string{"kubectl " + strings.Repeat("very ", 20)}
	for _, tc := range []struct {
		printer printer
		// lines are the lines wider than a terminal: the cause and the command.
		lines int
	}{
		{printer: printer{narrow: true, program: "supervisor"}, lines: 1},
		{printer: printer{program: "supervisor"}, lines: 2},
		{printer: printer{narrow: true, wide: true, program: "supervisor"}, lines: 3},
	} {
		tc.printer.answer(&a)
		text, long := tc.printer.text.String(), 0
		for line := range strings.Lines(text) {
			if len(strings.TrimSpace(line)) > console.Width {
				long++
			}
		}
		if long != tc.lines {
			t.Errorf("%d lines are too long for a terminal, want %d:\n%s", long, tc.lines, text)
		}
	}
}

// TestNew checks that the command refuses invalid arguments before it sends requests.
func TestNew(t *testing.T) {
	t.Parallel()
	cmd := New("kubectl chandlery", "test")
	cmd.SetArgs([]string{"-o", "xml"})
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), `--output is "xml"`) {
		t.Errorf("error is %v", err)
	}
	if !strings.Contains(cmd.Example, "kubectl chandlery explain argocd") {
		t.Errorf("examples are\n%s", cmd.Example)
	}
}
