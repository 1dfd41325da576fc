package clusterserviceversion

import (
	"cmp"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/providedapis"
)

// Observation is everything that the next phase of a ClusterServiceVersion
// depends on, read at one time. Nothing in it is ever modified.
type Observation struct {
	// CSV is the object itself.
	CSV *operatorsv1alpha1.ClusterServiceVersion
	// Now is the time of the observation.
	Now time.Time
	// Groups are the OperatorGroups of its namespace.
	Groups []operatorsv1.OperatorGroup
	// Claims says whether its OperatorGroup may have the APIs that it provides.
	Claims providedapis.Finding
	// Requirements says whether what it needs is there.
	Requirements Requirements
	// Components says how its Deployments are.
	Components Components
	// Access compares the rights that it is installed with to those that were refused.
	Access Access
	// Lift says how its roles for all namespaces are.
	Lift Lift
	// Serving says how what it serves through the API server is: API services
	// and webhooks.
	Serving Serving
	// Replacement says whom it replaces and by whom it is replaced.
	Replacement Replacement
}

// Requirements is the verdict over all requirements, with the evidence in the
// form of the status field of the same name.
type Requirements struct {
	// Met is true when each requirement is.
	Met bool
	// Statuses has one entry a requirement, in a fixed order.
	Statuses []operatorsv1alpha1.RequirementStatus
	// Lacking names the first that is not met and says why; empty when each is.
	Lacking string
	// CRDConflict names another ClusterServiceVersion of the namespace that
	// owns one of the same CRDs, the CRD, and what to do; empty when there is none.
	CRDConflict string
}

// Components is the state of the Deployments that a ClusterServiceVersion
// declares.
type Components struct {
	// Invalid says why it cannot be derived how the Deployments ought to be.
	// Those that there are go on as they are, and are judged by what they
	// report alone. Empty when it can.
	Invalid string
	// Present is true when there are Deployments of it.
	Present bool
	// Foreign names a Deployment that is in the way because it belongs to
	// somebody else; empty when there is none.
	Foreign string
	// Stale says which Deployment is missing or was applied from another spec;
	// installing again changes something. Empty when all are as they should be.
	Stale string
	// Waiting says which Deployment is not ready and why; empty when all are.
	Waiting string
	// Exhausted says which Deployment has given up becoming ready; empty when
	// none has.
	Exhausted string
	// Corrected is true when the Deployments ought to be otherwise than when the API
	// refused to install them, or the OperatorGroup no longer refuses the webhooks.
	Corrected bool
}

// Healthy reports whether each Deployment is up to date and available.
func (c Components) Healthy() bool {
	return c.Problem() == ""
}

// Problem returns the first thing that is wrong, the gravest first; empty when
// nothing is.
func (c Components) Problem() string {
	return cmp.Or(c.Foreign, c.Exhausted, c.Stale, c.Waiting)
}

// Serving is the state of the certificates, Services, API services and webhook
// configurations of a ClusterServiceVersion. A text is empty when there is
// nothing to say.
type Serving struct {
	// Unsupported names what is declared and cannot be provided.
	Unsupported string
	// Invalid says what is wrong with the webhooks as they are declared.
	Invalid string
	// Refused says what the OperatorGroup does not allow the version to serve.
	Refused string
	// Conflict names an API service that belongs to somebody else.
	Conflict string
	// Broken says which certificate, Service or right behind an API service is
	// not as it was applied. Installing again sets it right.
	Broken string
	// Missing names a webhook configuration that is gone. Installing again makes
	// it anew.
	Missing string
	// Waiting says what does not serve yet.
	Waiting string
	// Certified is true when there are certificates to be looked after, or provided by
	// somebody else. No event tells of their changes.
	Certified bool
	// Asking is true while something is waited for that only asking again tells of.
	Asking bool
	// Disrupted says what does not serve for a moment, while its pods move:
	// nothing is wrong that would not come right by itself.
	Disrupted string
	// SwitchDue is true when the Deployments serve and the API server has yet to
	// be told.
	SwitchDue bool
	// Converts are the CustomResourceDefinitions whose objects are converted by the
	// version's webhooks.
	Converts []string
	// Rest is how long the API server is left alone before it is told again, since it has
	// been told many times in a row; zero when it need not be. Contested then names what
	// somebody else changes back.
	Rest      time.Duration
	Contested string
	// CertsDue is true when a certificate has to be replaced.
	CertsDue bool
	// RenewDue is true when a certificate has to be replaced, or the pods that have it,
	// that no other version has taken over from this one, which waits.
	RenewDue bool
	// IssuedAt and RotateAt are when the certificates were made and when they
	// are to be replaced; zero when there are none.
	IssuedAt, RotateAt time.Time
}

// Problem returns the first thing that is wrong, the gravest first; empty when
// nothing is.
func (s Serving) Problem() string {
	return cmp.Or(s.Conflict, s.Broken, s.Missing, s.Waiting)
}

// Lift is the state of the cluster roles and bindings that repeat namespaced
// ones for all namespaces.
type Lift struct {
	// Stale is true when one is missing, out of date, or no longer wanted.
	Stale bool
	// Foreign names one that is in the way because it belongs to somebody
	// else; empty when there is none.
	Foreign string
}

// Access compares the account that the OperatorGroup names, and its rights, with those with
// which the API refused to install a version.
type Access struct {
	// Changed is true when they are others now.
	Changed bool
	// Settling is true when they changed shortly before the last refusal: the API server
	// may not have known of the change.
	Settling bool
}

// Neighbour is another ClusterServiceVersion on the same chain of replacements.
type Neighbour struct {
	// Name is its name, in the same namespace.
	Name string
	// Phase is its phase, and Reason that of the phase.
	Phase  operatorsv1alpha1.ClusterServiceVersionPhase
	Reason operatorsv1alpha1.ConditionReason
	// Leaving is true when it is being deleted.
	Leaving bool
}

// Replacement is the place of a ClusterServiceVersion on its chain.
type Replacement struct {
	// Predecessor is the one that it replaces; nil when that is not there.
	Predecessor *Neighbour
	// Successor is the one that replaces it; nil when there is none.
	Successor *Neighbour
	// Last is the end of the chain of successors; nil when there is none.
	Last *Neighbour
	// Vanished is the name that it says it replaces when nothing of that name
	// is there; empty otherwise.
	Vanished string
	// Circle names the versions that replace each other all the way round,
	// itself among them; empty when there is no such circle.
	Circle []string
	// Refused says why the predecessor must not be replaced; empty when it may.
	Refused string
	// Held says why it must not be replaced itself; empty when it may.
	Held string
	// Pinned says that a Subscription names the successor as the version that it is to
	// have.
	Pinned bool
}
