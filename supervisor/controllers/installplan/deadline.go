package installplan

import (
	"errors"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// openWindow sets status.startTime to now if the retry window of the failed step begins. Each step
// has one window, and its plan fails when the window of the failing step ends. A plan with n steps
// therefore ends after n+1 windows at the latest.
//
// The cause of the plan names the step and the status has startTime, so that the next process
// continues the window. The steps of a recreated version have new windows.
func openWindow(p *operatorsv1alpha1.InstallPlan, b *backoff, failed *stepError, now metav1.Time) {
	if errors.Is(failed.err, errOwnerGone) {
		b.windows = nil
	}
	step := slices.Index(p.Status.Plan, failed.step)
	begins := b.openWindow(step)
	last, failing := api.CauseOf(p)
	if !begins || failing && last.Step == step && p.Status.Message != "" {
		return
	}
	p.Status.StartTime = &now
	b.failures = 0
}

// nextTry returns the pause before the next try of a step that failed with err. The last try of a
// plan is at its deadline.
func nextTry(b *backoff, err error, start, now time.Time, retryTimeout time.Duration) time.Duration {
	after := b.fail(now, longest(err))
	if ends := terminal(err, retryTimeout, retryTimeout); !ends {
		return after
	}
	if left := start.Add(retryTimeout).Sub(now); left < after {
		return b.pause(now, left)
	}
	return after
}
