package clusterserviceversion

import (
	"strings"
	"testing"
	"time"
)

// TestInsistsLessAndLess performs a Switch whenever it is allowed, for a day.
func TestInsistsLessAndLess(t *testing.T) {
	var i insistence
	w, now, times := wording{"uid-1", 1}, noon(), 0
	for now.Before(noon().Add(24 * time.Hour)) {
		if rest := i.rest(w, now); rest > longestRest {
			t.Fatalf("a rest of %s", rest)
		} else if rest == 0 {
			i.told(w, now)
			times++
		}
		if times == freeTellings-1 && i.rest(w, now) != 0 {
			t.Error("an upgrade is held up")
		}
		now = now.Add(time.Second)
	}
	if most := 24*12 + 2*freeTellings + 10; times > most {
		t.Errorf("told %d times in a day, want %d at most", times, most)
	}
	if i.rest(w, now) == 0 && i.rest(w, now.Add(-time.Second)) == 0 {
		t.Error("the next time needs no rest")
	}
	if rest := i.rest(wording{"uid-1", 2}, now); rest != 0 {
		t.Errorf("what is new rests for %s", rest)
	}
	if rest := i.rest(w, now.Add(2*longestRest+time.Minute)); rest != 0 {
		t.Errorf("after a peace, it rests for %s", rest)
	}
}

// TestNextWhileItRests checks that other transitions continue during the pause before a Switch.
func TestNextWhileItRests(t *testing.T) {
	rests := func(o *Observation) {
		o.Serving.SwitchDue, o.Serving.Rest = true, 30*time.Second
		o.Serving.Contested = "MutatingWebhookConfiguration cups-x"
	}
	for name, tc := range map[string]struct {
		o    Observation
		want Transition
	}{
		"Works":        {o: good(installs, "InstallWaiting", rests), want: Transition{Phase: succeeded, Reason: "InstallSucceeded"}},
		"DoesNotServe": {o: good(installs, "InstallWaiting", rests, notServing), want: Transition{Phase: installs, Reason: "InstallWaiting"}},
		"TimeIsUp":     {o: good(installs, "InstallWaiting", rests, notServing, later(time.Hour)), want: Transition{Phase: broken, Reason: "InstallCheckFailed"}},
		"Succeeded":    {o: good(succeeded, "InstallSucceeded", rests), want: Transition{Phase: succeeded, Reason: "InstallSucceeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			next := Next(tc.o)
			if next.Phase != tc.want.Phase || next.Reason != tc.want.Reason || len(next.Actions) > 0 || next.After != 30*time.Second {
				t.Errorf("%s (%s) with %v after %s", next.Phase, next.Reason, next.Actions, next.After)
			}
			if tc.o.CSV.Status.Phase == succeeded && !strings.Contains(next.Message, "MutatingWebhookConfiguration cups-x is changed") {
				t.Errorf("it says %q", next.Message)
			}
		})
	}
}
