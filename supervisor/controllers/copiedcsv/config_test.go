package copiedcsv

import (
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
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

// TestIneffectiveSettings checks that the condition appears with the setting, and disappears with it.
func TestIneffectiveSettings(t *testing.T) {
	config := &operatorsv1.OLMConfig{}
	if !setConditions(config, true, noon()) || len(config.Status.Conditions) != 1 {
		t.Errorf("without the setting: %+v", config.Status.Conditions)
	}
	config.Spec.Features = &operatorsv1.Features{PackageServerSyncInterval: &metav1.Duration{Duration: time.Minute}}
	if !setConditions(config, true, noon()) || setConditions(config, true, noon()) {
		t.Error("with the setting, the conditions do not change exactly once")
	}
	got := apimeta.FindStatusCondition(config.Status.Conditions, "IneffectiveSettings")
	if got == nil || got.Status != metav1.ConditionTrue || !strings.HasPrefix(got.Message, "spec.features.packageServerSyncInterval has no effect: ") {
		t.Errorf("with the setting: %+v", got)
	}
	config.Spec.Features = nil
	if !setConditions(config, true, noon()) || len(config.Status.Conditions) != 1 {
		t.Errorf("after the removal: %+v", config.Status.Conditions)
	}
}
