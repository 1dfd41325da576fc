package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/demo/timeline"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	csv := func(name string, age int64, phase operatorsv1alpha1.ClusterServiceVersionPhase, message string) operatorsv1alpha1.ClusterServiceVersion {
		var c operatorsv1alpha1.ClusterServiceVersion
		c.Name, c.CreationTimestamp = name, metav1.Unix(1000-age, 0)
		c.Status.Phase, c.Status.Reason, c.Status.Message = phase, "Reason", message
		return c
	}
	copied := csv("copy", 0, operatorsv1alpha1.CSVPhaseSucceeded, "")
	copied.Labels = map[string]string{operatorsv1alpha1.CopiedLabelKey: "elsewhere"}
	var unresolved operatorsv1alpha1.Subscription
	unresolved.Status.Conditions = []operatorsv1alpha1.SubscriptionCondition{
		{Type: operatorsv1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue, Message: "no such channel"},
		{Type: operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, Status: corev1.ConditionFalse, Message: "all healthy"},
	}
	start := func(ok bool) timeline.Summary {
		return timeline.Summary{Package: "p", Phase: "no CSV", Reason: "late", Took: time.Second, OK: ok}
	}
	with := func(s timeline.Summary, csv, phase, reason string) timeline.Summary {
		s.CSV, s.Phase, s.Reason = csv, phase, reason
		return s
	}
	cases := map[string]struct {
		reason        string
		ok            bool
		csvs          []operatorsv1alpha1.ClusterServiceVersion
		subscriptions []operatorsv1alpha1.Subscription
		want          timeline.Summary
	}{
		"Nothing": {"what failed is all that is known", false, nil, nil, start(false)},
		"Succeeded": {
			"the newest version counts, copies do not", true,
			[]operatorsv1alpha1.ClusterServiceVersion{csv("p.v1", 9, operatorsv1alpha1.CSVPhaseReplacing, ""), csv("p.v2", 5, operatorsv1alpha1.CSVPhaseSucceeded, "done"), copied},
			nil, with(start(true), "p.v2", "Succeeded", "Reason"),
		},
		"Pending": {
			"a message helps where it went wrong", false,
			[]operatorsv1alpha1.ClusterServiceVersion{csv("p.v1", 9, operatorsv1alpha1.CSVPhasePending, "no cert-manager")},
			nil, with(start(false), "p.v1", "Pending", "Reason: no cert-manager"),
		},
		"Unresolved": {
			"without a version the Subscription knows why", false, nil,
			[]operatorsv1alpha1.Subscription{unresolved},
			with(start(false), "", "no CSV", "ResolutionFailed: no such channel"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, summarize(start(tc.ok), tc.csvs, tc.subscriptions)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
