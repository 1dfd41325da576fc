package supervisor

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// TestSuspectAlarm checks when suspects cause an Event, and that there are few Events.
func TestSuspectAlarm(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	clock := testingclock.NewFakePassiveClock(time.Now())
	a := newSuspectReporter(recorder, "home", logr.Discard())
	a.clock = clock
	one := competing.Finding{
		SuspectCount: 5, Suspects: []competing.Workload{{Namespace: "tenant", Name: "olm-operator", ServiceAccount: "weak"}},
		SuspectLeaseCount: 1, SuspectLeases: []competing.Supervisor{{Namespace: "tenant", Holder: "x\x1b[2J_1"}},
	}
	other := one
	other.SuspectCount = 6
	for _, step := range []struct {
		reason string
		after  time.Duration
		found  competing.Finding
		want   []string
	}{
		{reason: "there is nothing"},
		{reason: "something appears", found: one, want: []string{
			"Deployment tenant/olm-operator (service account weak)", `Lease tenant/chandlery-supervisor (holder "x\x1b[2J_1")`, "4 more", "--manager-namespaces",
		}},
		{reason: "it is still there", found: one, after: suspectsPause},
		{reason: "it changes a moment later", found: other, after: -time.Second},
		{reason: "it has changed", found: other, after: suspectsPause, want: []string{"5 more"}},
		{reason: "it is there for long", found: other, after: suspectsRepeat, want: []string{"5 more"}},
		{reason: "it is gone", after: suspectsRepeat},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		a.report(&step.found)
		select {
		case got := <-recorder.Events:
			if step.want == nil {
				t.Errorf("%s: Event %s", step.reason, got)
			}
			for _, want := range step.want {
				if !strings.Contains(got, want) || !strings.Contains(got, "Warning CompetingManagerSuspected") {
					t.Errorf("%s: Event %s lacks %q", step.reason, got, want)
				}
			}
		default:
			if step.want != nil {
				t.Errorf("%s: no Event", step.reason)
			}
		}
	}
}
