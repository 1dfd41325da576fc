package takeover

import (
	"strings"
	"testing"

	"github.com/chandlery/chandlery/supervisor/migration"
)

// TestReport checks the text of a report, and whether the command succeeds.
func TestReport(t *testing.T) {
	expected := migration.Difference{Object: "Deployment gongs/gong", Before: "generation 1", After: "generation 2", Expected: true}
	lost := migration.Difference{Object: "Pod lamps/lamp-x", Before: "0 restarts"}
	for _, tt := range []struct {
		reason     string
		report     Report
		unexpected bool
		want       string
	}{
		{"nothing changed", Report{Leader: "pod-1_a", Compared: 7}, false, "Supervisor pod-1_a leads.\nCompared 7 objects of operators; nothing unexpected changed.\n"},
		{
			"an update was in progress",
			Report{Compared: 7, Differences: []migration.Difference{expected}},
			false,
			"Compared 7 objects of operators; nothing unexpected changed.\n" +
				"Changes by InstallPlans that were in progress:\n  - Deployment gongs/gong: generation 2, was generation 1\n",
		},
		{
			"a pod is gone",
			Report{Compared: 7, Differences: []migration.Difference{lost}},
			true,
			"Unexpected changes:\n  - Pod lamps/lamp-x: absent, was 0 restarts\n",
		},
	} {
		var out strings.Builder
		err := (&migrateOptions{}).report(&out, &tt.report)
		if out.String() != tt.want || (err != nil) != tt.unexpected {
			t.Errorf("%s: error %v, and\n%s\nwant\n%s", tt.reason, err, out.String(), tt.want)
		}
	}
}
