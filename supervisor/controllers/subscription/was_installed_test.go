package subscription

import (
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// reinstalled fills the conditions of a version with phases other than success.
func reinstalled(csv *operatorsv1alpha1.ClusterServiceVersion) {
	for _, phase := range slices.Repeat([]operatorsv1alpha1.ClusterServiceVersionPhase{pending, installing, failed, pending}, operatorsv1alpha1.ConditionsLengthLimit/4) {
		once(phase)(csv)
	}
}

// TestLongHistory checks that a version counts as installed although its conditions have lost the
// success.
func TestLongHistory(t *testing.T) {
	for _, tt := range []struct {
		reason    string
		installed string // status.installedCSV of the Subscription
		csv       *operatorsv1alpha1.ClusterServiceVersion
		want      bool
	}{
		{reason: "noted, and dropped from the history", installed: "lamp.v3", csv: version("lamp.v3", "lamp", failed, reinstalled), want: true},
		{reason: "never noted", csv: version("lamp.v3", "lamp", failed, reinstalled)},
		{reason: "another one was noted", installed: "lamp.v2", csv: version("lamp.v3", "lamp", failed, reinstalled)},
		{reason: "noted by OLM, which does not wait for success", installed: "lamp.v3", csv: version("lamp.v3", "lamp", failed, once(pending), once(failed)), want: true},
		{reason: "recreated after it was noted", installed: "lamp.v3", csv: version("lamp.v3", "lamp", failed, once(pending), once(failed), made(2))},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if got := wasInstalled(subscription("my", "lamp", knows("lamp.v3", tt.installed)), tt.csv); got != tt.want {
				t.Errorf("was installed: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestWithdrawnAfterChecks checks which conditions allow the withdrawal of a version that never
// worked, as far as is known.
func TestWithdrawnAfterChecks(t *testing.T) {
	bundle := func(name, version, replaces string) fakecatalog.Entry {
		return fakecatalog.Entry{Name: name, Version: version, Replaces: replaces, Objects: []string{"{" + version + "}"}}
	}
	state := readFrom(t, fakecatalog.Simple("lamp", bundle("lamp.v1", "1.0.0", ""), bundle("lamp.v2", "2.0.0", "lamp.v1"), bundle("lamp.v3", "3.0.0", "lamp.v2")))
	third := func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		for key, text := range csv.Annotations {
			csv.Annotations[key] = strings.ReplaceAll(text, `"1.0.0"`, `"3.0.0"`)
		}
	}
	lasting := version("lamp.v3", "lamp", failed, third, replaces("lamp.v2"), reinstalled)
	for _, tt := range []struct {
		reason, installed  string
		csvs               []*operatorsv1alpha1.ClusterServiceVersion
		withdraws, reverts string
	}{
		{reason: "it worked once", installed: "lamp.v3", csvs: []*operatorsv1alpha1.ClusterServiceVersion{lasting}, reverts: "lamp.v2"},
		{reason: "nobody knows", csvs: []*operatorsv1alpha1.ClusterServiceVersion{lasting}, withdraws: "lamp.v3", reverts: "lamp.v2"},
		{
			reason: "the one before comes into its own again", csvs: []*operatorsv1alpha1.ClusterServiceVersion{
				version("lamp.v2", "lamp", replacing), version("lamp.v3", "lamp", failed, third, replaces("lamp.v2")),
			}, withdraws: "lamp.v3",
		},
		{reason: "nothing is there, but perhaps what it left", reverts: "lamp.v2"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			sub := subscription("my-lamp", "lamp", pinned("lamp.v2"), knows("", tt.installed))
			d := decide(t.Context(), observed(state, sub).with(tt.csvs), resolution.Resolve)[0]
			reverts := ""
			if choice := d.olderVersion(); choice != nil {
				reverts = choice.Bundle
			}
			if nameOf(d.withdraw) != tt.withdraws || reverts != tt.reverts {
				t.Errorf("withdraws %q, compares the definitions of %q, error %v", nameOf(d.withdraw), reverts, d.err)
			}
			d = d.withBlockers([]string{"a is in the way"})
			if d.withdraw != nil || d.olderVersion() != nil {
				t.Errorf("refused, and goes on: %+v", d)
			}
		})
	}
}
