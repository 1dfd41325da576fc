package failover

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// firstPause and longestPause limit the pause before an action is repeated that failed or had no
// effect.
const (
	firstPause   = 2 * time.Second
	longestPause = 5 * time.Minute
)

// decider collects the actions of a decision.
type decider struct {
	Input

	decision Decision
}

// Decide returns the actions for an observation. It is deterministic. It does not repeat actions
// that have been executed.
func Decide(o Input) Decision {
	d := &decider{Input: o, decision: Decision{Held: map[Hold]int{}, Budget: o.Budget.at(o.Now, o.Limits)}}
	deletions := deletions{decider: d, toDelete: map[types.UID]bool{}}
	candidates := deletions.candidates()
	if o.Role == Leader {
		deletions.choose(candidates)
	}
	marks := notReadyMarks{decider: d, toDelete: deletions.toDelete}
	if o.Role != Standby {
		marks.mark()
	}
	if o.Role == Leader {
		marks.unmark()
	}
	return d.decision
}

// pausing reports whether an action is in back-off.
func (d *decider) pausing(a Action) bool {
	attempt, tried := d.Attempts[a.target()]
	if !tried || d.overdue(attempt.Last, attempt.pause()) {
		return false
	}
	d.decision.Held[Backoff]++
	return true
}

// overdue reports whether the duration after since has passed. Otherwise, it schedules another
// decision for that time.
func (d *decider) overdue(since time.Time, after time.Duration) bool {
	wait := after - d.Now.Sub(since)
	if wait > 0 {
		d.requeueAfter(wait)
	}
	return wait <= 0
}

// addLimited adds an action to the decision if a token is left.
func (d *decider) addLimited(action Action, from *Bucket, limits Limits, hold Hold) {
	if wait, ok := from.take(limits); !ok {
		d.decision.Held[hold]++
		d.requeueAfter(wait)
		return
	}
	d.decision.Actions = append(d.decision.Actions, action)
	d.decision.Budget.Acted[action.Catalog.Namespace] = d.Now
}

// requeueAfter schedules another decision.
func (d *decider) requeueAfter(after time.Duration) {
	if d.decision.RequeueAfter == 0 || after < d.decision.RequeueAfter {
		d.decision.RequeueAfter = after
	}
}
