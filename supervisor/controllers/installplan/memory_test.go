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
		{failures: 0, chance: 0.5, want: time.Second},
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

func TestForeignPhaseStandsForAWhile(t *testing.T) {
	const dwell = 3 * time.Second
	now := at(0).Time
	rec := &record{}
	if got := rec.stands(working, now, dwell); got != 0 {
		t.Errorf("a phase from before this process stands for %s", got)
	}
	p := planOf(complete, true)
	p.ResourceVersion = "12"
	rec.written(p)
	for _, tt := range []struct {
		reason string
		phase  operatorsv1alpha1.InstallPlanPhase
		after  time.Duration
		want   time.Duration
	}{
		{reason: "it is ours", phase: complete, want: 0},
		{reason: "somebody wrote another", phase: working, after: time.Second, want: dwell},
		{reason: "which is still there", phase: working, after: 3 * time.Second, want: time.Second},
		{reason: "and then yet another", phase: lost, after: 3500 * time.Millisecond, want: dwell},
		{reason: "which has stood long enough", phase: lost, after: 7 * time.Second, want: 0},
		{reason: "and goes back", phase: complete, after: 8 * time.Second, want: 0},
		{reason: "and comes again", phase: lost, after: 9 * time.Second, want: dwell},
	} {
		if got := rec.stands(tt.phase, now.Add(tt.after), dwell); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
	}
}

// TestPausesGrowWhileAPlanFailsAtTheSameStep retries a failed plan many times.
func TestPausesGrowWhileAPlanFailsAtTheSameStep(t *testing.T) {
	rec := &record{}
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
		{reason: "after somebody else wrote the phase", step: 4, before: func() { rec.stands(complete, now, time.Second) }, want: 10 * time.Second},
	} {
		if tt.before != nil {
			tt.before()
		}
		rec.written(planOf(working, true, ""))
		rec.postpone(now, maxPause)
		rec.gaveUp(tt.step)
		rec.written(planOf(lost, true, ""))
		if !rec.due.IsZero() {
			t.Errorf("%s: the pause between tries is left over", tt.reason)
		}
		// Pauses are up to a fifth longer or shorter.
		if got := rec.rest(now); (got-tt.want).Abs() > tt.want/5 || !rec.due.Equal(now.Add(got)) {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
	}
}

func TestRecord(t *testing.T) {
	m := &memory{}
	key := types.NamespacedName{Namespace: "ops", Name: "install-lamp"}
	p := planOf(working, true, "", "")
	p.UID, p.ResourceVersion, p.Generation = "1", "12", 1
	rec := m.of(key, p)
	rec.written(p)
	before := p.DeepCopy()
	before.ResourceVersion = "9"
	if !rec.outdated(before) || rec.outdated(p) {
		t.Error("what was read before the last write does not count as outdated, or what came of it does")
	}
	rec.postpone(at(0).Time, maxPause)
	if again := m.of(key, p); again != rec || again.due.IsZero() || again.roused {
		t.Errorf("the record is lost: %+v", again)
	}
	m.wake(key)
	if again := m.of(key, p); !again.due.IsZero() || !again.roused {
		t.Error("a plan that was woken still waits")
	}
	if again := m.of(key, p); again.roused {
		t.Error("it was woken once only")
	}
	after := p.DeepCopy()
	after.Status.Plan[0].Status = "Created"
	rec.keep(p, after)
	recalled := p.DeepCopy()
	if !rec.recall(recalled) || recalled.Status.Plan[0].Status != "Created" {
		t.Error("the outcome of a pass is lost")
	}
	changed := p.DeepCopy()
	changed.Status.Message = "somebody's"
	if rec.recall(changed) || rec.recall(p) {
		t.Error("an outcome is used for a plan that has changed since")
	}
	other := p.DeepCopy()
	other.UID = "2"
	if again := m.of(key, other); again == rec || again.wrote {
		t.Error("a plan that was recreated has the record of the old one")
	}
	m.forget(key)
	m.wake(key)
}
