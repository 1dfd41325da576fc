package subscription

import (
	"errors"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

func pinned(to string) func(*operatorsv1alpha1.Subscription) {
	return func(sub *operatorsv1alpha1.Subscription) {
		metav1.SetMetaDataAnnotation(&sub.ObjectMeta, api.AnnotationPin, to)
	}
}

// going marks a version as being deleted.
func going(csv *operatorsv1alpha1.ClusterServiceVersion) {
	now := at(9)
	csv.DeletionTimestamp, csv.Finalizers = &now, []string{"operators.coreos.com/csv-cleanup"}
}

func TestDecidePinned(t *testing.T) {
	type list = []*operatorsv1alpha1.ClusterServiceVersion
	bundle := func(name, version, replaces string) fakecatalog.Entry {
		return fakecatalog.Entry{Name: name, Version: version, Replaces: replaces, Objects: []string{"{" + version + "}"}}
	}
	state := readFrom(t, fakecatalog.Simple("lamp", bundle("lamp.v1", "1.0.0", ""), bundle("lamp.v2", "2.0.0", "lamp.v1"), bundle("lamp.v3", "3.0.0", "lamp.v2")))
	const deleting, ready = operatorsv1alpha1.CSVPhaseDeleting, operatorsv1alpha1.CSVPhaseInstallReady
	numbered := func(number string) func(*operatorsv1alpha1.ClusterServiceVersion) {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			for key, text := range csv.Annotations {
				csv.Annotations[key] = strings.ReplaceAll(text, `"1.0.0"`, `"`+number+`"`)
			}
		}
	}
	for _, tt := range []struct {
		reason   string
		pin      string
		csvs     list
		plans    func(sub *operatorsv1alpha1.Subscription) *operatorsv1alpha1.InstallPlan
		install  string
		back     bool
		withdraw string
		held     string
		err      string
		says     string
	}{
		{reason: "nothing is there", pin: "lamp.v2", install: "lamp.v2", says: "install lamp.v2"},
		{reason: "spaces around the name", pin: " lamp.v2 ", install: "lamp.v2", says: "install lamp.v2"},
		{reason: "it is there", pin: "lamp.v2", csvs: list{version("lamp.v2", "lamp", succeeded)}, held: "annotation chandlery.dev/pin pins lamp.v2; lamp.v3 is available", says: "up to date"},
		{reason: "a newer one", pin: "lamp.v3", csvs: list{version("lamp.v1", "lamp", succeeded)}, install: "lamp.v2", says: "install lamp.v2"},
		{reason: "an older one", pin: "lamp.v1", csvs: list{version("lamp.v3", "lamp", succeeded, numbered("3.0.0"))}, install: "lamp.v1", back: true, says: "install lamp.v1"},
		{reason: "an older one while the newest has failed after it had worked", pin: "lamp.v1", csvs: list{version("lamp.v3", "lamp", failed, numbered("3.0.0"), once(succeeded))}, install: "lamp.v1", back: true, says: "install lamp.v1"},
		{reason: "a newer one while the newest has failed", pin: "lamp.v3", csvs: list{version("lamp.v2", "lamp", failed)}, install: "lamp.v3", says: "install lamp.v3"},
		{reason: "the newest has failed and is the one", pin: "lamp.v2", csvs: list{version("lamp.v2", "lamp", failed)}, held: "lamp.v3 is available", says: "waiting for lamp.v2 in phase Failed"},
		{
			reason: "an update never worked", pin: "lamp.v1", csvs: list{version("lamp.v1", "lamp", replacing), version("lamp.v2", "lamp", failed, replaces("lamp.v1"))},
			withdraw: "lamp.v2", says: "withdraw lamp.v2",
		},
		{
			reason: "an update does not get on", pin: "lamp.v1", csvs: list{version("lamp.v1", "lamp", replacing), version("lamp.v2", "lamp", pending, replaces("lamp.v1"))},
			withdraw: "lamp.v2", says: "withdraw lamp.v2",
		},
		{
			reason: "an update that never worked to a version between", pin: "lamp.v1",
			csvs: list{version("lamp.v2", "lamp", replacing), version("lamp.v3", "lamp", failed, numbered("3.0.0"), replaces("lamp.v2"))}, withdraw: "lamp.v3", says: "withdraw lamp.v3",
		},
		{reason: "the first version never worked", pin: "lamp.v1", csvs: list{version("lamp.v2", "lamp", ready, numbered("2.0.0"))}, withdraw: "lamp.v2", says: "withdraw lamp.v2"},
		{
			reason: "an update has just worked", pin: "lamp.v1", csvs: list{version("lamp.v1", "lamp", replacing), version("lamp.v2", "lamp", succeeded, numbered("2.0.0"), replaces("lamp.v1"))},
			says: "up to date",
		},
		{
			reason: "what it is to go back to is just being deleted", pin: "lamp.v1",
			csvs: list{version("lamp.v1", "lamp", deleting, going), version("lamp.v2", "lamp", succeeded, numbered("2.0.0"), replaces("lamp.v1"))}, says: "up to date",
		},
		{
			reason: "an update is being installed", pin: "lamp.v1", csvs: list{version("lamp.v1", "lamp", replacing), version("lamp.v2", "lamp", pending, replaces("lamp.v1"))},
			plans: func(sub *operatorsv1alpha1.Subscription) *operatorsv1alpha1.InstallPlan {
				return installPlan("p", "lamp.v2", operatorsv1alpha1.InstallPlanPhaseInstalling, 2, sub)
			},
			says: "waiting for lamp.v2 in phase Pending",
		},
		{reason: "no such version", pin: "lamp.v9", csvs: list{version("lamp.v2", "lamp", succeeded)}, err: "no operators found with name lamp.v9 in channel stable", says: "resolution failed"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			sub := subscription("my-lamp", "lamp", pinned(tt.pin))
			o := observed(state, sub).with(tt.csvs)
			if tt.plans != nil {
				p := tt.plans(sub)
				o.plans[p.Name] = p
			}
			d := decide(t.Context(), o, resolution.Resolve)[0]
			name, back := "", false
			if d.install != nil {
				name, back = d.install.Bundle, d.install.Downgrade
			}
			if name != tt.install || back != tt.back || nameOf(d.withdraw) != tt.withdraw || d.String() != tt.says {
				t.Errorf("installs %q, back %t, withdraws %q, says %q, error %v", name, back, nameOf(d.withdraw), d.String(), d.err)
			}
			for text, err := range map[string]error{tt.held: d.held, tt.err: d.err} {
				if text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
					t.Errorf("%v does not contain %q", err, text)
				}
			}
			if (d.err != nil) != (tt.err != "") || (d.held != nil) != (tt.held != "") {
				t.Errorf("error %v, held %v", d.err, d.held)
			}
		})
	}
}

// TestPinCondition checks the conditions of a pinned Subscription.
func TestPinCondition(t *testing.T) {
	sub := subscription("my", "lamp", pinned("lamp.v1"))
	o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", succeeded)})
	status := statusOf(o, decided(t, o)[0], nil, at(1))
	c := status.GetCondition(api.ConditionNewerVersionHeld)
	if c.Status != "True" || c.Reason != "Pinned" || !strings.Contains(c.Message, "lamp.v2 is available") || status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
		t.Errorf("state %s, condition %+v", status.State, c)
	}

	back := subscription("my", "lamp", pinned("lamp.v1"))
	o = observed(read(t), back).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", succeeded)})
	d := decided(t, o)[0]
	d = d.withBlockers([]string{"b is in the way", "a is in the way"})
	refused := statusOf(o, d, nil, at(1))
	c, remedy := refused.GetCondition(unresolved), refused.GetCondition(api.ConditionBlocked)
	const (
		want      = "constraints not satisfiable: a is in the way, b is in the way, subscription my is pinned to lamp.v1"
		wantToFix = "nothing was changed; fix what is named, and the supervisor continues automatically; or name another version in annotation chandlery.dev/pin, or remove it to stay at lamp.v2"
	)
	if c.Status != "True" || c.Reason != api.ReasonConstraintsNotSatisfiable || c.Message != want || d.install != nil || temporary(d.err) {
		t.Errorf("condition %+v", c)
	}
	if remedy.Status != "True" || remedy.Message != wantToFix || remedy.Reason != api.ReasonConstraintsNotSatisfiable {
		t.Errorf("condition %+v", remedy)
	}

	o = observed(read(t), back).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", replacing), version("lamp.v2", "lamp", failed, replaces("lamp.v1"))})
	c = statusOf(o, decided(t, o)[0], nil, at(1)).GetCondition(api.ConditionVersionUnhealthy)
	if !strings.Contains(c.Message, "the supervisor deletes it, because the Subscription is pinned to lamp.v1") {
		t.Errorf("condition %+v", c)
	}
}

// TestReplacing checks which versions have a spec.replaces that would form a cycle with the version
// to install.
func TestReplacing(t *testing.T) {
	sub := subscription("my", "lamp", pinned("lamp.v1"))
	o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{
		version("fan.v1", "fan", succeeded, replaces("lamp.v1")), version("lamp.v2", "lamp", succeeded, replaces("lamp.v1")),
	})
	d := decided(t, o)[0]
	if got := d.replacing(); len(got) != 1 || got[0].Name != "lamp.v2" {
		t.Errorf("crossed %v", got)
	}
	d = d.failed(errors.New("no"))
	if got := d.replacing(); got != nil {
		t.Errorf("crossed %v", got)
	}
}

// TestAlreadyChecked checks that objects are read before a plan is created, and not again while it is
// open.
func TestAlreadyChecked(t *testing.T) {
	sub := subscription("my", "lamp", pinned("lamp.v1"))
	for phase, want := range map[operatorsv1alpha1.InstallPlanPhase]bool{"": false, "RequiresApproval": true, "Installing": true, "Failed": false} {
		p := installPlan("p", "lamp.v1", phase, 3, sub)
		o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", succeeded)}, p)
		if got := alreadyChecked(o.plans, &decision{subscription: sub, selection: selection{install: &resolution.Choice{Bundle: "lamp.v1", Downgrade: true}}}); got != want {
			t.Errorf("phase %q: checked %t", phase, got)
		}
	}
}
