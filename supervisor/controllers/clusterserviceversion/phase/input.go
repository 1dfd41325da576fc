// Package phase decides the next step of a ClusterServiceVersion. It is a table without access to a
// cluster: Next derives a Transition from an Input. In each phase, the first rule that applies
// determines the transition.
package phase

import (
	"cmp"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// Input is everything that the next phase of a ClusterServiceVersion depends on, read at one
// time. It is never modified.
type Input struct {
	// CSV is the object itself.
	CSV *operatorsv1alpha1.ClusterServiceVersion
	// Now is the time of the observation.
	Now time.Time
	// Groups are the OperatorGroups of its namespace.
	Groups []operatorsv1.OperatorGroup
	// Claims states whether its OperatorGroup may claim the APIs that it provides.
	Claims providedapis.Finding
	// Requirements states whether its requirements are met.
	Requirements Requirements
	// Components is the state of its Deployments.
	Components Components
	// Access compares its present permissions with those that were refused.
	Access Access
	// ClusterRBAC is the state of its cluster-scoped copies of RBAC.
	ClusterRBAC ClusterRBAC
	// Webhooks is the state of its webhooks and API services.
	Webhooks Webhooks
	// Replacement states which version it replaces and which one replaces it.
	Replacement Replacement
}

// Requirements is the result for all requirements, with the details in the form of the status field
// of the same name.
type Requirements struct {
	// Met is true when each requirement is met.
	Met bool
	// Statuses has one entry for each requirement, in a fixed order.
	Statuses []operatorsv1alpha1.RequirementStatus
	// CRDConflict names another ClusterServiceVersion of the namespace that owns one of the same
	// CRDs, the CRD, and the remedy; empty when there is none.
	CRDConflict string
}

// Components is the state of the Deployments that a ClusterServiceVersion
// declares.
type Components struct {
	// Invalid states why the desired Deployments cannot be derived; empty when they can. Existing
	// Deployments then stay as they are, and only their status counts.
	Invalid string
	// Present is true when Deployments of the version exist.
	Present bool
	// OwnerConflict names a Deployment of another owner that has the name of one of the version's; empty
	// when there is none.
	OwnerConflict string
	// Stale names a Deployment that is missing or was applied from another spec, so that a new
	// installation changes it. It is empty when all are up to date.
	Stale string
	// Changed is true when the Deployment in Stale exists.
	Changed bool
	// Waiting names a Deployment that is not ready, and the reason; empty when all are ready.
	Waiting string
	// DeadlineExceeded names a Deployment whose rollout has exceeded its deadline; empty when there is
	// none.
	DeadlineExceeded string
	// Corrected is true when the desired Deployments differ from those that the API refused, or the
	// OperatorGroup no longer refuses the webhooks.
	Corrected bool
}

// Healthy reports whether each Deployment is up to date and available.
func (c Components) Healthy() bool {
	return c.Problem() == ""
}

// Problem returns the first problem, the gravest first; empty when there is none.
func (c Components) Problem() string {
	return cmp.Or(c.OwnerConflict, c.DeadlineExceeded, c.Stale, c.Waiting)
}

// Webhooks is the state of the certificates, Services, API services and webhook configurations of a
// ClusterServiceVersion. A text is empty when it does not apply.
type Webhooks struct {
	// Unsupported names a declaration that cannot be provided.
	Unsupported string
	// Invalid states what is wrong with the declared webhooks.
	Invalid Sentence
	// Refused states what the OperatorGroup does not allow the version to serve.
	Refused string
	// Conflict names an API service of another owner.
	Conflict string
	// Broken names a certificate, Service or permission behind an API service that is not as it was
	// applied. A new installation repairs it.
	Broken string
	// Missing names a webhook configuration that was deleted. A new installation recreates it.
	Missing string
	// Waiting states what is not serving yet.
	Waiting Sentence
	// Probing is true while the version waits for an answer that causes no event.
	Probing bool
	// Disrupted states what is unavailable for a moment, while its pods move. It needs no repair.
	Disrupted string
	// Converts are the CustomResourceDefinitions whose objects the version's webhooks convert.
	Converts []string
	// Certificates is the state of the certificates.
	Certificates Certificates
	// Switch is the state of the objects that lead the API server to the Deployments.
	Switch SwitchState
}

// Certificates is the state of the certificates of a ClusterServiceVersion.
type Certificates struct {
	// Present is true when there are certificates to renew, or certificates of another provider.
	// Their changes cause no event.
	Present bool
	// Due is true when a certificate has to be replaced.
	Due bool
	// RenewDue is true when a waiting version has to request a certificate, or to replace one or the pods
	// that have it. Certificates that another version has taken over do not count.
	RenewDue bool
	// NotIssued states why the supervisor's certificates are still used instead of those of cert-manager.
	NotIssued string
	// Requested is true while a certificate of cert-manager is awaited.
	Requested bool
	// IssuedAt and RotateAt are when the certificates were issued and when they have to be
	// replaced; zero when there are none.
	IssuedAt, RotateAt time.Time
}

// SwitchState is the state of the objects that lead the API server to the Deployments.
type SwitchState struct {
	// Due is true when an object is missing or out of date.
	Due bool
	// Pause is the time until the next Switch, after many in a row; zero for no pause.
	Pause time.Duration
	// Contested names an object that another client changes back; empty without a pause.
	Contested string
}

// Problem returns the first problem, the gravest first; empty when there is none.
func (w Webhooks) Problem() Sentence {
	switch {
	case w.Conflict != "" || w.Broken != "":
		return Sentence{Text: olmtext.APIServicesMissing, Detail: cmp.Or(w.Conflict, w.Broken)}
	case w.Missing != "":
		return Sentence{Text: olmtext.WebhooksMissing, Detail: w.Missing}
	default:
		return w.Waiting
	}
}

// Sentence is a text that clients compare.
type Sentence struct {
	// Text is the message.
	Text string
	// Detail is what the message lacks; empty when it lacks nothing.
	Detail string
}

// ClusterRBAC is the state of the cluster-scoped copies of roles and bindings.
type ClusterRBAC struct {
	// Stale is true when a copy is missing, out of date, or no longer wanted.
	Stale bool
	// OwnerConflict names an object of another owner that has the name of a copy; empty when there is
	// none.
	OwnerConflict string
}

// Access compares the account of the OperatorGroup, and its permissions, with those with which the API
// refused to install a version.
type Access struct {
	// Changed is true when they differ now.
	Changed bool
	// Settling is true when they changed shortly before the last refusal: the API server may have
	// missed the change.
	Settling bool
}

// Neighbour is another ClusterServiceVersion on the same chain of replacements.
type Neighbour struct {
	// Name is its name, in the same namespace.
	Name string
	// Phase is its phase, and Reason the reason of the phase.
	Phase  operatorsv1alpha1.ClusterServiceVersionPhase
	Reason operatorsv1alpha1.ConditionReason
	// Deleting is true when it is being deleted.
	Deleting bool
}

// Replacement is the place of a ClusterServiceVersion on its chain.
type Replacement struct {
	// Predecessor is the version that it replaces; nil when that does not exist.
	Predecessor *Neighbour
	// Successor is the version that replaces it; nil when there is none.
	Successor *Neighbour
	// Last is the end of the chain of successors; nil when there is none.
	Last *Neighbour
	// MissingPredecessor is the name in spec.replaces when no version has that name; empty otherwise.
	MissingPredecessor string
	// Cycle names the versions that replace each other in a cycle, including itself; empty without
	// a cycle.
	Cycle []string
	// PredecessorNotUpgradeable states why the predecessor must not be replaced; empty when it may be.
	PredecessorNotUpgradeable string
	// NotUpgradeable states why the version itself must not be replaced; empty when it may be.
	NotUpgradeable string
	// Pinned reports that a Subscription is pinned to the successor.
	Pinned bool
}

// DisruptionTime is how long an API service may be unavailable without a failure.
const DisruptionTime = time.Minute

// IsWaiting reports whether a version is in a phase that may last for months while its pods serve.
// Its objects are not applied then, but its certificates expire.
func IsWaiting(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return csv.Status.Phase == operatorsv1alpha1.CSVPhasePending || csv.Status.Phase == operatorsv1alpha1.CSVPhaseReplacing
}

// RefusedToInstall reports whether a version has failed because the API refused one of its objects. A version that
// declares what is not supported has one of these reasons too, but no cause.
func RefusedToInstall(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	if csv.Status.Phase != operatorsv1alpha1.CSVPhaseFailed {
		return false
	}
	if csv.Status.Reason == operatorsv1alpha1.CSVReasonComponentFailedNoRetry {
		_, found := api.CauseOf(csv)
		return found
	}
	return csv.Status.Reason == operatorsv1alpha1.CSVReasonComponentFailed
}
