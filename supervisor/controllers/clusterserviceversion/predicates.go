package clusterserviceversion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/providedapis"
)

func always(Observation) bool { return true }

func not(p func(Observation) bool) func(Observation) bool {
	return func(o Observation) bool { return !p(o) }
}

func requirementsMissing(o Observation) bool { return !o.Requirements.Met }

func crdTaken(o Observation) bool { return o.Requirements.CRDConflict != "" }

func apiServiceTaken(o Observation) bool { return o.Serving.Conflict != "" }

func badInstall(o Observation) bool { return o.Components.Invalid != "" }

// unclaimed reports whether the OperatorGroup has still to claim the APIs
// provided. Two operators that were installed at the same time would otherwise
// not see each other.
func unclaimed(o Observation) bool { return o.Claims.Result == providedapis.Add }

func healthy(o Observation) bool { return o.Components.Healthy() && o.Serving.Problem() == "" }

func servingBroken(o Observation) bool { return o.Serving.Broken != "" }

func webhookMissing(o Observation) bool { return o.Serving.Missing != "" }

func disrupted(o Observation) bool { return o.Serving.Disrupted != "" }

func certsDue(o Observation) bool { return o.Serving.CertsDue }

// switchDue reports whether the API server is to be told of what serves: only
// when the Deployments do, so that calls never go where nobody answers.
func switchDue(o Observation) bool {
	return o.Serving.SwitchDue && o.Serving.Rest == 0 && o.Components.Healthy()
}

func exhausted(o Observation) bool { return o.Components.Exhausted != "" }

func stale(o Observation) bool { return o.Components.Stale != "" }

func liftStale(o Observation) bool { return o.Lift.Stale }

func foreignObject(o Observation) bool { return o.Components.Foreign != "" || o.Lift.Foreign != "" }

func hasPredecessor(o Observation) bool { return o.Replacement.Predecessor != nil }

func hasSuccessor(o Observation) bool { return o.Replacement.Successor != nil }

// handsOver reports whether another version takes over, and the operator has
// nothing against it. One that has goes on being looked after.
func handsOver(o Observation) bool { return hasSuccessor(o) && o.Replacement.Held == "" }

// failForward reports whether failed versions may be replaced: whoever pins a package to
// the next version says what he wants.
func failForward(o Observation) bool {
	return o.Replacement.Pinned || len(o.Groups) == 1 && o.Groups[0].UpgradeStrategy() == operatorsv1.UpgradeStrategyUnsafeFailForward
}

func failsForward(o Observation) bool { return failForward(o) && handsOver(o) }

// outlived reports whether a version cannot run any more while the one that
// replaces it can and waits for it: the two would wait for each other for ever.
// It comes about when an upgrade takes away an API version that the older needs.
func outlived(o Observation) bool {
	return requirementsMissing(o) && handsOver(o) &&
		o.Replacement.Successor.Phase == operatorsv1alpha1.CSVPhasePending &&
		o.Replacement.Successor.Reason == operatorsv1alpha1.CSVReasonRequirementsMet
}

func lastSucceeded(o Observation) bool {
	return o.Replacement.Last.Phase == operatorsv1alpha1.CSVPhaseSucceeded
}

func predecessorIs(phase operatorsv1alpha1.ClusterServiceVersionPhase) func(Observation) bool {
	return func(o Observation) bool { return hasPredecessor(o) && o.Replacement.Predecessor.Phase == phase }
}

func predecessorInTheWay(o Observation) bool {
	return hasPredecessor(o) &&
		!predecessorIs(operatorsv1alpha1.CSVPhaseReplacing)(o) &&
		!predecessorIs(operatorsv1alpha1.CSVPhaseDeleting)(o)
}

// predecessorLeaving reports whether the predecessor is being deleted by somebody, and
// not because it has handed over.
func predecessorLeaving(o Observation) bool {
	return predecessorInTheWay(o) && o.Replacement.Predecessor.Leaving
}

func failedFor(reasons ...operatorsv1alpha1.ConditionReason) func(Observation) bool {
	return func(o Observation) bool { return slices.Contains(reasons, o.CSV.Status.Reason) }
}

func inPhaseFor(d time.Duration) func(Observation) bool {
	return func(o Observation) bool { return timeLeft(o, d) <= 0 }
}

// cameBack reports whether an installation is to be repeated, and was begun
// only just now.
func cameBack(o Observation) bool {
	return o.CSV.Status.Reason == operatorsv1alpha1.CSVReasonWaiting && timeLeft(o, repeatDelay) > 0
}

// timeLeft is what is left of d, counted from the last change of phase. A
// status without that time has not been written by anybody careful; its time
// is up.
func timeLeft(o Observation, d time.Duration) time.Duration {
	since := o.CSV.Status.LastTransitionTime
	if since == nil {
		return 0
	}
	return d - o.Now.Sub(since.Time)
}

// accessChanged reports whether a version that the API refused to install would be
// installed with other rights now.
func accessChanged(o Observation) bool { return refusedToInstall(o.CSV) && o.Access.Changed }

func reinstallDue(o Observation) bool { return timeLeft(o, reinstallWait(o)) <= 0 }

// repairDue reports whether p holds and may be seen to. Not at once if it was
// just that which the API refused.
func repairDue(p func(Observation) bool) func(Observation) bool {
	return func(o Observation) bool {
		refusedJustNow := o.CSV.Status.Reason == operatorsv1alpha1.CSVReasonComponentFailed && timeLeft(o, reinstallDelay) > 0
		return p(o) && (!refusedJustNow || o.Components.Corrected)
	}
}

// reinstallWait is how long a failed installation rests before it is repeated.
// Repeating one that would change something need not wait, unless it was just
// that change which the API refused, and not another one.
func reinstallWait(o Observation) time.Duration {
	switch {
	case o.CSV.Status.Reason == operatorsv1alpha1.CSVReasonComponentFailed && o.Components.Corrected:
		return 0
	case o.CSV.Status.Reason == operatorsv1alpha1.CSVReasonComponentFailed && o.Access.Settling:
		return repeatDelay
	case o.CSV.Status.Reason == operatorsv1alpha1.CSVReasonComponentFailed:
		return reinstallDelay
	case o.Components.Stale != "":
		return 0
	default:
		return installTimeout
	}
}

// option completes a transition.
type option func(*Transition, Observation)

func do(actions ...Action) option {
	return func(t *Transition, _ Observation) { t.Actions = actions }
}

// install asks for everything to be applied, what Deployments need to serve first.
func install(t *Transition, o Observation) {
	t.Actions = []Action{Install}
	if o.CSV.HasCAResources() {
		t.Actions = []Action{Serve, Install}
	}
}

func after(d time.Duration) option {
	return func(t *Transition, _ Observation) { t.After = d }
}

// untilNextLook asks for another look when a certificate is to be replaced, and for one
// now and then where an API is required that is not watched.
func untilNextLook(t *Transition, o Observation) {
	if !o.Serving.RotateAt.IsZero() {
		t.After = max(o.Serving.RotateAt.Sub(o.Now), time.Second)
	}
	if namesAPIs(o.CSV) && (t.After == 0 || t.After > apisDelay) {
		t.After = apisDelay
	}
}

// remaining asks for another look when d has passed since the last change of
// phase.
func remaining(d time.Duration) option {
	return func(t *Transition, o Observation) { t.After = max(timeLeft(o, d), time.Second) }
}

func with(t Transition, o Observation, opts ...option) Transition {
	for _, opt := range opts {
		opt(&t, o)
	}
	return t
}

// stay keeps the phase as it is. An error that the message told of is over: what
// follows was found without one.
func stay(o Observation) Transition {
	s := o.CSV.Status
	return Transition{Phase: s.Phase, Reason: s.Reason, Message: withoutTrouble(s.Message)}
}

func to(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason,
	message string,
) func(Observation) Transition {
	return then(phase, reason, fixed(message))
}

func then(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason,
	message func(Observation) string, opts ...option,
) func(Observation) Transition {
	return func(o Observation) Transition {
		return with(Transition{Phase: phase, Reason: reason, Message: message(o)}, o, opts...)
	}
}

func fixed(message string) func(Observation) string {
	return func(Observation) string { return message }
}

func problem(prefix string) func(Observation) string {
	return func(o Observation) string {
		return prefix + cmp.Or(o.Components.Problem(), o.Serving.Problem(), "webhooks not installed")
	}
}

func brokenMessage(o Observation) string { return o.Serving.Broken }

// claimsMessage is what a gate says of APIs that the OperatorGroup cannot have, and of
// what stays as it is though the version that has to do with it must not run.
func claimsMessage(says string) func(Observation) string {
	return func(o Observation) string { return says + ": " + o.Claims.Explain() + keptConversions(o) }
}

// keptConversions says that a webhook which does not answer is left in place, and why.
func keptConversions(o Observation) string {
	if len(o.Serving.Converts) == 0 {
		return ""
	}
	return fmt.Sprintf("; until it runs again or is deleted, objects of %s can be used in the version in which they are stored alone: "+
		"without the conversion webhook that is gone with it they would be mixed up", strings.Join(o.Serving.Converts, ", "))
}

// lackingMessage is a sentence that clients know, and what is behind it.
func lackingMessage(says string) func(Observation) string {
	return func(o Observation) string {
		if o.Requirements.Lacking == "" {
			return says
		}
		return says + ": " + o.Requirements.Lacking
	}
}

func foreignMessage(o Observation) string {
	if o.Components.Foreign != "" {
		return "install strategy failed: " + o.Components.Foreign
	}
	return "install strategy failed: " + o.Lift.Foreign
}
