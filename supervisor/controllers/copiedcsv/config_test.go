package copiedcsv

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestComplete(t *testing.T) {
	off := func(o *input) { o.enabled = false }
	protect := func(o *input) { o.protected = []string{"pantry"} }
	everywhere := []string{"cellar", "garden", "pantry"}
	for name, tc := range map[string]struct {
		reason  string
		targets []string
		copied  []string
		change  []func(*input)
		want    bool
	}{
		"All":          {"everywhere", []string{""}, everywhere, nil, true},
		"Missing":      {"one is missing", []string{""}, []string{"cellar", "garden"}, nil, false},
		"Off":          {"none, as asked", []string{""}, nil, []func(*input){off}, true},
		"OffNot":       {"one is left", []string{""}, []string{"cellar"}, []func(*input){off}, false},
		"Protected":    {"where it is protected", []string{""}, []string{"pantry"}, []func(*input){off, protect}, true},
		"NotProtected": {"missing where it is protected", []string{""}, nil, []func(*input){off, protect}, false},
		"Listed":       {"a version of few namespaces is not counted", []string{"pantry"}, nil, nil, true},
		"Unknown":      {"nor one with unknown targets", []string{""}, nil, []func(*input){func(o *input) { o.groups = nil }}, true},
		"Leaving":      {"what goes with its namespace is not unexpected", []string{""}, []string{"attic"}, []func(*input){off}, true},
	} {
		if got := complete(seen(tc.targets, tc.copied, tc.change...)); got != tc.want {
			t.Errorf("%s: complete = %t, want %t: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestCondition(t *testing.T) {
	for _, tc := range []struct {
		disabled      *bool
		matchesConfig bool
		status        metav1.ConditionStatus
		reason        string
	}{
		{nil, true, metav1.ConditionFalse, api.ReasonCopiedCSVsEnabled},
		{nil, false, metav1.ConditionFalse, api.ReasonCopiedCSVsEnabled},
		{new(false), true, metav1.ConditionFalse, api.ReasonCopiedCSVsEnabled},
		{new(true), true, metav1.ConditionTrue, api.ReasonCopiedCSVsDisabled},
		{new(true), false, metav1.ConditionFalse, api.ReasonCopiedCSVsDisabled},
	} {
		config := &operatorsv1.OLMConfig{Spec: operatorsv1.OLMConfigSpec{Features: &operatorsv1.Features{DisableCopiedCSVs: tc.disabled}}}
		got := condition(config, tc.matchesConfig, noon())
		if got.Type != "DisabledCopiedCSVs" || got.Status != tc.status || got.Reason != tc.reason || got.Message == "" {
			t.Errorf("condition(disabled %v, as asked %t) = %+v, want %s for %s", tc.disabled, tc.matchesConfig, got, tc.status, tc.reason)
		}
	}
}
