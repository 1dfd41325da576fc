package phase

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

func always(Input) bool { return true }

func not(p func(Input) bool) func(Input) bool {
	return func(o Input) bool { return !p(o) }
}

func requirementsMissing(o Input) bool { return !o.Requirements.Met }

func crdTaken(o Input) bool { return o.Requirements.CRDConflict != "" }

func apiServiceTaken(o Input) bool { return o.Webhooks.Conflict != "" }

func badInstall(o Input) bool { return o.Components.Invalid != "" }

// claimPending reports whether the OperatorGroup has still to claim the provided APIs. Otherwise two
// operators that are installed at the same time would miss each other.
func claimPending(o Input) bool { return o.Claims.Result == providedapis.Add }

func healthy(o Input) bool { return o.Components.Healthy() && o.Webhooks.Problem() == Sentence{} }

func servingBroken(o Input) bool { return o.Webhooks.Broken != "" }

func webhookMissing(o Input) bool { return o.Webhooks.Missing != "" }

func disrupted(o Input) bool { return o.Webhooks.Disrupted != "" }

func certsDue(o Input) bool { return o.Webhooks.Certificates.Due }

// switchDue reports whether the API server has to be switched to what the Deployments serve. It
// requires ready Deployments, so that calls always get an answer.
func switchDue(o Input) bool {
	return o.Webhooks.Switch.Due && o.Webhooks.Switch.Pause == 0 && o.Components.Healthy()
}

func deadlineExceeded(o Input) bool { return o.Components.DeadlineExceeded != "" }

func stale(o Input) bool { return o.Components.Stale != "" }

// deploymentChanged reports whether the gravest problem is a Deployment that another client changed, or that the
// version declares otherwise.
func deploymentChanged(o Input) bool {
	return o.Components.Changed && o.Components.Problem() == o.Components.Stale
}

func copiesStale(o Input) bool { return o.ClusterRBAC.Stale }

func foreignObject(o Input) bool {
	return o.Components.OwnerConflict != "" || o.ClusterRBAC.OwnerConflict != ""
}

func hasPredecessor(o Input) bool { return o.Replacement.Predecessor != nil }

func hasSuccessor(o Input) bool { return o.Replacement.Successor != nil }

// mayBeReplaced reports whether another version takes over and the operator allows it. Otherwise the
// version stays reconciled.
func mayBeReplaced(o Input) bool { return hasSuccessor(o) && o.Replacement.NotUpgradeable == "" }

// failForwardAllowed reports whether failed versions may be replaced. A pin to the next version allows it
// too.
func failForwardAllowed(o Input) bool {
	return o.Replacement.Pinned || len(o.Groups) == 1 && o.Groups[0].UpgradeStrategy() == operatorsv1.UpgradeStrategyUnsafeFailForward
}

func failsForward(o Input) bool { return failForwardAllowed(o) && mayBeReplaced(o) }

// deadlockedWithSuccessor reports whether a version can no longer run while its replacement can and waits
// for it. The two would wait for each other for ever. This happens when an upgrade removes an API version
// that the older one needs.
func deadlockedWithSuccessor(o Input) bool {
	return requirementsMissing(o) && mayBeReplaced(o) &&
		o.Replacement.Successor.Phase == operatorsv1alpha1.CSVPhasePending &&
		o.Replacement.Successor.Reason == operatorsv1alpha1.CSVReasonRequirementsMet
}

func lastSucceeded(o Input) bool {
	return o.Replacement.Last.Phase == operatorsv1alpha1.CSVPhaseSucceeded
}

func predecessorIs(phase operatorsv1alpha1.ClusterServiceVersionPhase) func(Input) bool {
	return func(o Input) bool { return hasPredecessor(o) && o.Replacement.Predecessor.Phase == phase }
}

func predecessorNotReplaced(o Input) bool {
	return hasPredecessor(o) &&
		!predecessorIs(operatorsv1alpha1.CSVPhaseReplacing)(o) &&
		!predecessorIs(operatorsv1alpha1.CSVPhaseDeleting)(o)
}

// predecessorDeleting reports whether the predecessor is being deleted without having handed over.
func predecessorDeleting(o Input) bool {
	return predecessorNotReplaced(o) && o.Replacement.Predecessor.Deleting
}

func failedFor(reasons ...operatorsv1alpha1.ConditionReason) func(Input) bool {
	return func(o Input) bool { return slices.Contains(reasons, o.CSV.Status.Reason) }
}

func inPhaseFor(d time.Duration) func(Input) bool {
	return func(o Input) bool { return timeLeft(o, d) <= 0 }
}

// installedJustNow reports whether an installation has to be repeated that began only just now.
func installedJustNow(o Input) bool {
	return o.CSV.Status.Reason == operatorsv1alpha1.CSVReasonWaiting && timeLeft(o, repeatDelay) > 0
}

// timeLeft returns the rest of d since the last change of phase. It returns zero for a status
// without that time.
func timeLeft(o Input, d time.Duration) time.Duration {
	since := o.CSV.Status.LastTransitionTime
	if since == nil {
		return 0
	}
	return d - o.Now.Sub(since.Time)
}

// accessChanged reports whether a version that the API refused to install would now be installed
// with other permissions.
func accessChanged(o Input) bool { return RefusedToInstall(o.CSV) && o.Access.Changed }

// specCorrected reports whether a version has failed because of its spec, and no longer does.
func specCorrected(o Input) bool { return failedFor(specReasons...)(o) && !RefusedToInstall(o.CSV) }

func reinstallDue(o Input) bool { return timeLeft(o, reinstallWait(o)) <= 0 }

// repairDue reports whether p holds and a repair may begin. The repair waits if the API has just
// refused it.
func repairDue(p func(Input) bool) func(Input) bool {
	return func(o Input) bool {
		refusedJustNow := RefusedToInstall(o.CSV) && timeLeft(o, reinstallDelay) > 0
		return p(o) && (!refusedJustNow || o.Components.Corrected)
	}
}

// reinstallWait returns the pause before a failed installation is repeated. There is no pause for
// an installation that would change something, unless the API has just refused that change.
func reinstallWait(o Input) time.Duration {
	switch {
	case RefusedToInstall(o.CSV) && o.Components.Corrected:
		return 0
	case RefusedToInstall(o.CSV) && o.Access.Settling:
		return repeatDelay
	case RefusedToInstall(o.CSV):
		return reinstallDelay
	case o.Components.Stale != "":
		return 0
	default:
		return installTimeout
	}
}

// option completes a transition.
type option func(*Transition, Input)

func do(actions ...Action) option {
	return func(t *Transition, _ Input) { t.Actions = actions }
}

// install sets the actions that apply everything. What Deployments need to serve comes first.
func install(t *Transition, o Input) {
	t.Actions = []Action{Install}
	if o.CSV.HasCAResources() {
		t.Actions = []Action{PrepareWebhooks, Install}
	}
}

func after(d time.Duration) option {
	return func(t *Transition, _ Input) { t.After = d }
}

// untilNextCheck sets the next reconcile to the replacement of a certificate. Where an API is
// required that is not watched, it sets a regular one.
func untilNextCheck(t *Transition, o Input) {
	if !o.Webhooks.Certificates.RotateAt.IsZero() {
		t.After = max(o.Webhooks.Certificates.RotateAt.Sub(o.Now), time.Second)
	}
	if namesAPIs(o.CSV) && (t.After == 0 || t.After > apisDelay) {
		t.After = apisDelay
	}
}

// remaining sets the next reconcile to d after the last change of phase.
func remaining(d time.Duration) option {
	return func(t *Transition, o Input) { t.After = max(timeLeft(o, d), time.Second) }
}

func with(t Transition, o Input, opts ...option) Transition {
	for _, opt := range opts {
		opt(&t, o)
	}
	return t
}

// unavailable sets the cause of a version that fails because of a Deployment. A Deployment that is
// missing or changed is applied again at once.
func unavailable(t *Transition, o Input) {
	if o.Components.DeadlineExceeded != "" || o.Components.Waiting != "" {
		t.Cause = &api.Cause{Reason: api.ReasonDeploymentNotAvailable}
	}
}

// keepPhase returns a transition that keeps the phase and its cause. It drops an appended error, since
// the observation succeeded.
func keepPhase(o Input) Transition {
	s := o.CSV.Status
	t := Transition{Phase: s.Phase, Reason: s.Reason, Message: s.Message}
	cause, found := api.CauseOf(o.CSV)
	switch {
	case found && cause.PhaseMessage != "":
		t.Message = cause.PhaseMessage
	case found:
		t.Cause = &cause
	}
	return t
}

func to(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason,
	message string,
) func(Input) Transition {
	return then(phase, reason, fixed(message))
}

func then(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason,
	message func(Input) string, opts ...option,
) func(Input) Transition {
	return func(o Input) Transition {
		return with(Transition{Phase: phase, Reason: reason, Message: message(o)}, o, opts...)
	}
}

func fixed(message string) func(Input) string {
	return func(Input) string { return message }
}

// detailed sets the cause of a transition whose message lacks a detail. It keeps a more exact cause.
func detailed(detail func(Input) string) option {
	return func(t *Transition, o Input) {
		text := detail(o)
		switch {
		case text == "":
		case t.Cause == nil:
			t.Cause = &api.Cause{Reason: string(t.Reason), Detail: text}
		default:
			t.Cause.Detail = text
		}
	}
}

// problem returns the sentence about the first problem of a version, and problemDetail its detail.
func problem(o Input) string {
	if text := o.Components.Problem(); text != "" {
		return olmtext.InstallProblem(text)
	}
	return cmp.Or(o.Webhooks.Problem().Text, olmtext.WebhooksMissing)
}

func problemDetail(o Input) string {
	if o.Components.Problem() != "" {
		return ""
	}
	return o.Webhooks.Problem().Detail
}

func anyProblem(o Input) string {
	return cmp.Or(o.Components.Problem(), o.Webhooks.Problem().Detail, o.Webhooks.Problem().Text)
}

func deadlineMessage(o Input) string { return olmtext.InstallFailed(o.Components.Problem()) }

func brokenMessage(o Input) string { return o.Webhooks.Broken }

// claims returns which APIs the OperatorGroup cannot claim. It also names conversions that stay
// although their version must not run.
func claims(o Input) string { return o.Claims.Explain() + remainingConversions(o) }

// remainingConversions returns a message about conversion webhooks that stay configured without an
// answer.
func remainingConversions(o Input) string {
	if len(o.Webhooks.Converts) == 0 {
		return ""
	}
	return fmt.Sprintf("; until this version runs again or is deleted, objects of %s can be used only in their stored version, "+
		"because their conversion webhook no longer runs", strings.Join(o.Webhooks.Converts, ", "))
}

func ownerConflictMessage(o Input) string {
	if o.Components.OwnerConflict != "" {
		return olmtext.StrategyFailed(o.Components.OwnerConflict)
	}
	return olmtext.StrategyFailed(o.ClusterRBAC.OwnerConflict)
}

// namesAPIs reports whether csv requires APIs whose removal causes no event.
func namesAPIs(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return len(csv.Spec.NativeAPIs)+len(csv.Spec.APIServiceDefinitions.Required) > 0
}
