package installplan

import (
	"errors"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// openWindow sets the status's startTime to now where the step that failed begins its retry
// window: the window of a plan is that of the step that fails, and each step has one. So a
// plan with n steps ends after n+1 windows at the latest.
//
// The cause of the plan names the step, and the status has startTime, so that the next process
// continues the window. A version that was deleted makes its steps begin again, with new windows.
func openWindow(p *operatorsv1alpha1.InstallPlan, rec *record, failed *stepError, now metav1.Time) {
	if errors.Is(failed.err, errOwnerGone) {
		rec.windows = nil
	}
	step := slices.Index(p.Status.Plan, failed.step)
	had := rec.windows[step]
	if rec.windows == nil {
		rec.windows = map[int]bool{}
	}
	rec.windows[step] = true
	last, failing := api.CauseOf(p)
	if had || failing && last.Step != nil && *last.Step == step && p.Status.Message != "" {
		return
	}
	p.Status.StartTime = &now
	rec.failures = 0
}

// nextTry returns the pause before the next try of a step that failed with err. A plan that
// ends at its deadline has its last try there.
func nextTry(rec *record, err error, start, now time.Time, retryTimeout time.Duration) time.Duration {
	after := rec.postpone(now, longest(err))
	if ends := terminal(err, retryTimeout, retryTimeout); !ends {
		return after
	}
	if left := start.Add(retryTimeout).Sub(now); left < after {
		return rec.wait(now, left)
	}
	return after
}
