package installplan

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

func TestPause(t *testing.T) {
	for _, tt := range []struct {
		failures int
		chance   float64
		want     time.Duration
	}{
		{failures: 0, chance: 0.5, want: 0},
		{failures: 1, chance: 0.5, want: time.Second},
		{failures: 2, chance: 0.5, want: 2 * time.Second},
		{failures: 5, chance: 0.5, want: 16 * time.Second},
		{failures: 6, chance: 0.5, want: 30 * time.Second},
		{failures: 1 << 40, chance: 0.5, want: 30 * time.Second},
		{failures: 1, chance: 0, want: 800 * time.Millisecond},
		{failures: 1, chance: 1, want: 1200 * time.Millisecond},
	} {
		if got := pause(tt.failures, firstPause, maxPause, tt.chance); got != tt.want {
			t.Errorf("after %d failures, chance %g: %s, want %s", tt.failures, tt.chance, got, tt.want)
		}
	}
}

func TestForeignPhaseDwell(t *testing.T) {
	const minimum = 3 * time.Second
	now := at(0).Time
	rec := &planRecord{}
	if got := rec.foreignPhaseWait(phaseInstalling, now, minimum); got != 0 {
		t.Errorf("a phase from before this process stays for %s", got)
	}
	p := planOf(phaseComplete, true)
	p.ResourceVersion = "12"
	rec.recordWrite(p)
	for _, tt := range []struct {
		reason string
		phase  operatorsv1alpha1.InstallPlanPhase
		after  time.Duration
		want   time.Duration
	}{
		{reason: "this process wrote it", phase: phaseComplete, want: 0},
		{reason: "another client wrote another phase", phase: phaseInstalling, after: time.Second, want: minimum},
		{reason: "it has not changed", phase: phaseInstalling, after: 3 * time.Second, want: time.Second},
		{reason: "another client wrote a third phase", phase: phaseFailed, after: 3500 * time.Millisecond, want: minimum},
		{reason: "the minimum is over", phase: phaseFailed, after: 7 * time.Second, want: 0},
		{reason: "the phase of this process is back", phase: phaseComplete, after: 8 * time.Second, want: 0},
		{reason: "another client wrote the phase again", phase: phaseFailed, after: 9 * time.Second, want: minimum},
	} {
		if got := rec.foreignPhaseWait(tt.phase, now.Add(tt.after), minimum); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
	}
}

// TestPausesOfFailedPlan retries a failed plan many times.
func TestPausesOfFailedPlan(t *testing.T) {
	rec := &planRecord{}
	now := at(0).Time
	for _, tt := range []struct {
		reason string
		step   int
		before func()
		want   time.Duration
	}{
		{reason: "for the first time", step: 3, want: 10 * time.Second},
		{reason: "at the same step", step: 3, want: 20 * time.Second},
		{reason: "at one before it", step: 1, want: 40 * time.Second},
		{reason: "at the same step again", step: 3, want: 80 * time.Second},
		{reason: "further on", step: 4, want: 10 * time.Second},
		{reason: "there again", step: 4, want: 20 * time.Second},
		{reason: "after another client wrote the phase", step: 4, before: func() { rec.foreignPhaseWait(phaseComplete, now, time.Second) }, want: 10 * time.Second},
	} {
		if tt.before != nil {
			tt.before()
		}
		rec.recordWrite(planOf(phaseInstalling, true, ""))
		rec.backoff.fail(now, maxPause)
		rec.backoff.recordFailedStep(tt.step)
		rec.recordWrite(planOf(phaseFailed, true, ""))
		if !rec.backoff.due.IsZero() {
			t.Errorf("%s: the pause between tries continues", tt.reason)
		}
		// Pauses are up to a fifth longer or shorter.
		if got := rec.backoff.nextCheck(now); (got-tt.want).Abs() > tt.want/5 || !rec.backoff.due.Equal(now.Add(got)) {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
	}
}

func TestRecord(t *testing.T) {
	m := &planRecords{}
	key := types.NamespacedName{Namespace: "ops", Name: "install-lamp"}
	p := planOf(phaseInstalling, true, "", "")
	p.UID, p.ResourceVersion, p.Generation = "1", "12", 1
	rec := m.get(key, p)
	rec.recordWrite(p)
	before := p.DeepCopy()
	before.ResourceVersion = "9"
	if !rec.isStale(before) || rec.isStale(p) {
		t.Error("a plan from before the last write is not stale, or the written plan is")
	}
	rec.backoff.fail(at(0).Time, maxPause)
	if again := m.get(key, p); again != rec || again.backoff.due.IsZero() || again.retryNow {
		t.Errorf("the record is lost: %+v", again)
	}
	m.trigger(key)
	if again := m.get(key, p); !again.backoff.due.IsZero() || !again.retryNow {
		t.Error("a plan that was triggered has a pause")
	}
	if again := m.get(key, p); again.retryNow {
		t.Error("one event triggers a plan twice")
	}
	after := p.DeepCopy()
	after.Status.Plan[0].Status = "Created"
	rec.storeOutcome(p, after)
	recalled := p.DeepCopy()
	if !rec.restoreOutcome(recalled) || recalled.Status.Plan[0].Status != "Created" {
		t.Error("the outcome of a pass is lost")
	}
	changed := p.DeepCopy()
	changed.Status.Message = "changed"
	if rec.restoreOutcome(changed) || rec.restoreOutcome(p) {
		t.Error("an outcome is restored in a plan that has changed since")
	}
	other := p.DeepCopy()
	other.UID = "2"
	if again := m.get(key, other); again == rec || again.phases.hasWritten {
		t.Error("a plan that was recreated has the record of the old one")
	}
	m.forget(key)
	m.trigger(key)
}
