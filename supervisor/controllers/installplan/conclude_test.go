package installplan

import (
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// attempt is the outcome of a pass over the steps of a plan.
type attempt struct {
	step int
	err  error // nil for success of all steps
}

// replay runs passes until a plan leaves Installing or limit has passed. tried returns the outcome
// of a pass by the time since the first pass. The process restarts at restart.
func replay(t *testing.T, steps int, window, restart, limit time.Duration, tried func(time.Duration) attempt) (p *operatorsv1alpha1.InstallPlan, at time.Duration) {
	t.Helper()
	p = planOf(phaseInstalling, true, make([]operatorsv1alpha1.StepStatus, steps)...)
	for i, s := range p.Status.Plan {
		s.Resource.Name = strings.Repeat("x", i+1)
	}
	r := &reconciler{retryTimeout: window}
	rec := &planRecord{}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 900e6, time.UTC)
	now := begin
	restarted := restart == 0
	for p.Status.Phase == phaseInstalling && at <= limit {
		if !restarted && at >= restart {
			rec, restarted = &planRecord{}, true
		}
		if p.Status.StartTime == nil {
			p.Status.StartTime = new(metav1.NewTime(now))
		}
		a := tried(at)
		var err *stepError
		if a.err != nil {
			err = &stepError{step: p.Status.Plan[a.step], err: a.err}
		} else {
			for _, s := range p.Status.Plan {
				s.Status = operatorsv1alpha1.StepStatusCreated
			}
		}
		result := r.conclude(t.Context(), p, rec, err, metav1.NewTime(now))
		// The API server stores whole seconds.
		p.Status.StartTime = new(metav1.NewTime(p.Status.StartTime.Truncate(time.Second)))
		if p.Status.Phase != phaseInstalling {
			break
		}
		now = now.Add(max(result.RequeueAfter, time.Millisecond))
		at = now.Sub(begin)
	}
	return p, now.Sub(p.Status.StartTime.Time)
}

// TestPlanFailsAtItsDeadline lets a step fail until the plan ends, for different pauses between
// tries.
func TestPlanFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	lasting, away := apierrors.NewBadRequest("odd"), apierrors.NewServiceUnavailable("away")
	for name, tt := range map[string]struct {
		reason          string
		window, restart time.Duration
		tried           func(time.Duration) attempt
		phase           operatorsv1alpha1.InstallPlanPhase
		late            time.Duration // how much later than the window it may end
	}{
		"1s":  {reason: "the least pause is as long", window: time.Second, phase: phaseFailed},
		"5s":  {reason: "the next pause would end after it", window: 5 * time.Second, phase: phaseFailed},
		"1m":  {reason: "the default", window: time.Minute, phase: phaseFailed},
		"10m": {reason: "pauses are as long as they get", window: 10 * time.Minute, phase: phaseFailed},
		"Restart": {
			reason: "the status says since when the step fails", window: time.Minute, restart: 30 * time.Second, phase: phaseFailed,
		},
		"FixedBeforeTheDeadline": {
			reason: "the last try is at the deadline", window: time.Minute, phase: phaseComplete,
			tried: func(at time.Duration) attempt {
				if at < 59*time.Second {
					return attempt{err: lasting}
				}
				return attempt{}
			},
		},
		"AwayAtTheDeadline": {
			reason: "no answer does not end a plan, and does not begin its window again", window: time.Minute, phase: phaseFailed, late: 16 * time.Second,
			tried: func(at time.Duration) attempt {
				if at > 50*time.Second && at < 70*time.Second {
					return attempt{err: away}
				}
				return attempt{err: lasting}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.tried == nil {
				tt.tried = func(time.Duration) attempt { return attempt{err: lasting} }
			}
			// Pauses are random.
			for range 50 {
				p, took := replay(t, 1, tt.window, tt.restart, time.Hour, tt.tried)
				if p.Status.Phase != tt.phase {
					t.Fatalf("%s: phase %q after %s", tt.reason, p.Status.Phase, took)
				}
				if tt.phase == phaseFailed && (took < tt.window || took > tt.window+2*time.Second+tt.late) {
					t.Errorf("%s: Failed after %s, want %s and at most 2 s more", tt.reason, took, tt.window)
				}
			}
		})
	}
}

// TestFailedPlanTellsItsError checks what clients read of a failed plan.
func TestFailedPlanTellsItsError(t *testing.T) {
	t.Parallel()
	p, _ := replay(t, 1, time.Second, 0, time.Minute, func(time.Duration) attempt { return attempt{err: apierrors.NewBadRequest("odd")} })
	c := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	if want := "error applying ConfigMap x of lamp.v1: odd"; p.Status.Message != want || !strings.HasPrefix(c.Message, want) || c.Status != corev1.ConditionFalse {
		t.Errorf("message %q, condition %+v", p.Status.Message, c)
	}
}

// TestWindowsAreBounded lets the steps of a plan fail in turns. Each step has its window, and the
// plan ends.
func TestWindowsAreBounded(t *testing.T) {
	t.Parallel()
	const steps, window = 3, time.Minute
	passes := 0
	begin, end := time.Duration(0), time.Duration(0)
	p, _ := replay(t, steps, window, 0, 100*window, func(at time.Duration) attempt {
		passes++
		end = at
		return attempt{step: passes % steps, err: apierrors.NewBadRequest("odd")}
	})
	if took := end - begin; p.Status.Phase != phaseFailed || took > (steps+1)*window {
		t.Errorf("phase %q after %s", p.Status.Phase, took)
	}
	// A step that begins to fail late has its whole window.
	_, took := replay(t, steps, window, 0, time.Hour, func(at time.Duration) attempt {
		if at < 50*time.Second {
			return attempt{err: apierrors.NewBadRequest("odd")}
		}
		return attempt{step: 1, err: apierrors.NewBadRequest("odd")}
	})
	if took < window || took > window+2*time.Second {
		t.Errorf("the second step failed for %s", took)
	}
}
