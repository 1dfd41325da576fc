package monitoring_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMetricsOfOLM checks that all metrics of OLM exist, with its labels. Dashboards, alerts and recording
// rules of clusters name them.
func TestMetricsOfOLM(t *testing.T) {
	known := documentedMetrics(t)
	for name, want := range map[string][]string{
		"csv_count":                             nil,
		"csv_upgrade_count":                     nil,
		"csv_succeeded":                         {"name", "namespace", "version"},
		"csv_abnormal":                          {"name", "namespace", "phase", "reason", "version"},
		"install_plan_count":                    nil,
		"subscription_count":                    nil,
		"catalog_source_count":                  nil,
		"catalogsource_ready":                   {"name", "namespace"},
		"catalog_source_snapshots_total":        {"name", "namespace"},
		"subscription_sync_total":               {"approval", "channel", "installed", "name", "package"},
		"olm_resolution_duration_seconds":       {"outcome"},
		"olm_resolution_duration_seconds_sum":   {"outcome"},
		"olm_resolution_duration_seconds_count": {"outcome"},
		"installplan_warnings_total":            nil,
	} {
		labels, exists := known[name]
		if !exists {
			t.Errorf("no metric %s", name)
		}
		got := slices.Sorted(slices.Values(labels))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("labels of %s (-OLM +ours):\n%s", name, diff)
		}
	}
	if _, exists := known["olm_resolution_duration_seconds_bucket"]; exists {
		t.Error("olm_resolution_duration_seconds is a histogram, and not a summary")
	}
}
