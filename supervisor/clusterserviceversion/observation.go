package clusterserviceversion

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
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
	// Requirements says whether what it needs is there.
	Requirements Requirements
	// Components says how its Deployments are.
	Components Components
	// Lift says how its roles for all namespaces are.
	Lift Lift
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
	// CRDConflict names another ClusterServiceVersion of the namespace that
	// owns one of the same CRDs, and the CRD; empty when there is none.
	CRDConflict string
}

// Components is the state of the Deployments that a ClusterServiceVersion
// declares.
type Components struct {
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
}

// Healthy reports whether each Deployment is up to date and available.
func (c Components) Healthy() bool {
	return c.Problem() == ""
}

// Problem returns the first thing that is wrong, the gravest first; empty when
// nothing is.
func (c Components) Problem() string {
	for _, p := range []string{c.Foreign, c.Exhausted, c.Stale, c.Waiting} {
		if p != "" {
			return p
		}
	}
	return ""
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

// Neighbour is another ClusterServiceVersion on the same chain of replacements.
type Neighbour struct {
	// Name is its name, in the same namespace.
	Name string
	// Phase is its phase.
	Phase operatorsv1alpha1.ClusterServiceVersionPhase
}

// Replacement is the place of a ClusterServiceVersion on its chain.
type Replacement struct {
	// Predecessor is the one that it replaces; nil when that is not there.
	Predecessor *Neighbour
	// Successor is the one that replaces it; nil when there is none.
	Successor *Neighbour
	// Last is the end of the chain of successors; nil when there is none.
	Last *Neighbour
}
