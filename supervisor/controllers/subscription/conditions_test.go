package subscription

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// TestStatusRests turns errors of servers into conditions. An API server stores valid text only;
// the stored text must not be written again.
func TestStatusRests(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("ä", maxMessage)[:1023] + "…",
		"bytes that are no text: \xff\xfe",
		"two lines\nand colours \x1b[31m",
		strings.Repeat("\xff", 2*maxMessage),
	} {
		sub := subscription("my", "lamp")
		o := observed(catalogs.State{Err: errors.New(text)}, sub)
		status := statusOf(o, decided(t, o)[0], nil, at(1))
		stored := throughServer(t, status)
		sub.Status = stored
		if changed(stored, statusOf(o, decided(t, o)[0], nil, at(2)), equality.Semantic.DeepEqual) {
			t.Errorf("%q: what was written a moment ago is written again", text)
		}
		message := stored.GetCondition(operatorsv1alpha1.SubscriptionResolutionFailed).Message
		if message == "" || len(message) > maxMessage || strings.ContainsAny(message, "\n\x1b") {
			t.Errorf("%q: message %q", text, message)
		}
	}
}

// throughServer returns a status as an API server stores it.
func throughServer(t *testing.T, status operatorsv1alpha1.SubscriptionStatus) (stored operatorsv1alpha1.SubscriptionStatus) {
	t.Helper()
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

// TestConfigCondition checks that a Subscription reports an annotation that is invalid, or that names containers that
// the Deployments of its versions lack.
func TestConfigCondition(t *testing.T) {
	v1, v2 := version("lamp.v1", "lamp", succeeded), version("lamp.v2", "lamp", succeeded)
	addDeployment(v1, "manager")
	addDeployment(v2, "operator")
	v2.Spec.Replaces, v2.Status.Phase = "lamp.v1", operatorsv1alpha1.CSVPhaseInstalling
	type versions = []*operatorsv1alpha1.ClusterServiceVersion
	const unknown = `args[manger]: no Deployment of lamp.v1 has this container (did you mean "manager"?); their containers are manager`
	for text, tc := range map[string]struct {
		versions     versions
		reason, want string
	}{
		`{"replicas": 2`:                                    {nil, "InvalidAnnotation", "the JSON is invalid at line 1, column 14"},
		`{"replicas": "2"}`:                                 {nil, "InvalidAnnotation", `replicas: Invalid value: "2": must be a 32-bit integer of at least 0`},
		`{"replicas": 2}`:                                   {versions{v1}, "", ""},
		`{"args": {"manger": ["early"]}}`:                   {nil, "", ""},
		`{"args": {"manger": ["-v"]}}`:                      {versions{v1}, "UnknownContainer", unknown},
		`{"args": {"manager": ["-v"], "operator": ["-v"]}}`: {versions{v1, v2}, "", ""},
	} {
		o := observed(read(t), subscription("my", "lamp", knows("lamp.v1", "lamp.v1"), func(sub *operatorsv1alpha1.Subscription) {
			sub.Annotations = map[string]string{api.AnnotationConfig: text}
		}))
		o.versions = tc.versions
		status := statusOf(o, decided(t, o)[0], nil, at(1))
		got := status.GetCondition(api.ConditionConfigInvalid)
		if tc.want == "" && got.Status != corev1.ConditionUnknown {
			t.Errorf("%s: condition %+v", text, got)
		}
		if tc.want != "" && (got.Reason != tc.reason || !strings.HasPrefix(got.Message, "annotation chandlery.dev/config of Subscription home/my: "+tc.want)) {
			t.Errorf("%s: condition %+v, want reason %s and message %q", text, got, tc.reason, tc.want)
		}
		o.subscriptions[0].Annotations, o.subscriptions[0].Status = nil, status
		if got := statusOf(o, decided(t, o)[0], nil, at(2)).GetCondition(api.ConditionConfigInvalid); got.Status != corev1.ConditionUnknown {
			t.Errorf("%s: the annotation is gone, the condition is not: %+v", text, got)
		}
	}
}

// addDeployment adds a Deployment with one container to a version.
func addDeployment(csv *operatorsv1alpha1.ClusterServiceVersion, container string) {
	d := operatorsv1alpha1.StrategyDeploymentSpec{Name: csv.Name}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: container}}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{d}
}

// TestPlanOfOthersGone checks that a generated Subscription reports no missing plan when the plan
// was deleted with its owners.
func TestPlanOfOthersGone(t *testing.T) {
	told := func(phase operatorsv1alpha1.InstallPlanPhase) string {
		return transitionlog.Log{}.Append(transitionlog.Transition{Plan: "p", UID: "uid-p", Phase: string(phase)}).Text()
	}
	for _, tt := range []struct {
		reason, generatedBy, entries, condition string
		missing                                 bool
	}{
		{reason: "it was done", generatedBy: "p"},
		{reason: "it was done, and called missing before", generatedBy: "p", entries: told("Complete"), condition: "InstallPlanMissing"},
		{reason: "it was not done", generatedBy: "p", entries: told("Installing"), condition: "InstallPlanPending", missing: true},
		{reason: "it was its own", missing: true},
		{reason: "it was a later one, its own", generatedBy: "earlier", missing: true},
	} {
		sub := subscription("my", "lamp", knows("lamp.v2", "lamp.v2"), func(sub *operatorsv1alpha1.Subscription) {
			sub.Annotations = map[string]string{api.AnnotationGeneratedBy: tt.generatedBy, api.AnnotationTransitions: tt.entries}
			sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: "p", UID: "uid-p"}
			if tt.condition != "" {
				sub.Status.Conditions = []operatorsv1alpha1.SubscriptionCondition{isTrue(operatorsv1alpha1.SubscriptionConditionType(tt.condition), "Installing", "")}
			}
		})
		o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", succeeded)})
		status := statusOf(o, decided(t, o)[0], nil, at(1))
		if got := status.GetCondition(planMissing).Status == corev1.ConditionTrue; got != tt.missing {
			t.Errorf("%s: missing %t, want %t", tt.reason, got, tt.missing)
		}
		sub.Status = status
		if next := statusOf(o, decided(t, o)[0], nil, at(2)); changed(status, next, equality.Semantic.DeepEqual) {
			t.Errorf("%s: nothing happened and the status changed", tt.reason)
		}
	}
}
