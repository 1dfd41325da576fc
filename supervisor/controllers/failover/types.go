package failover

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// Input holds the inputs of Decide.
type Input struct {
	Now time.Time
	// Role determines the permitted actions of this process.
	Role     Role
	Catalogs []Catalog
	// Nodes are the nodes of the cluster by name. A node that does not exist on the API server is
	// Gone. The state of a missing entry is unknown.
	Nodes map[string]Node
	// Marks are the marks that this process has set, by pod UID.
	Marks map[types.UID]Mark
	// Attempts are the actions of this process whose effect is not visible yet.
	Attempts map[Target]Attempt
	// Budget is the budget that the last decision returned.
	Budget Budget
	Limits Limits
}

// Catalog is a CatalogSource and the pods that serve it.
type Catalog struct {
	Key      types.NamespacedName
	Replicas []Replica
}

// Replica is a pod that serves a catalog.
type Replica struct {
	Name  string
	UID   types.UID
	Node  string
	Phase corev1.PodPhase
	// Ready is true if the pod is ready according to the API.
	Ready bool
	// Marked is since when the pod is not ready because of a mark of this controller; zero if it is
	// not.
	Marked time.Time
	// Terminating is true if the pod is being deleted.
	Terminating bool
	// Disrupted is when the pod's deletion was announced by the condition DisruptionTarget; zero if
	// it was not.
	Disrupted time.Time

	// Health is the health of the replica according to probes, and Since is when it last changed.
	// If the pod is not probed, Health is Unknown and Since is the start of this process.
	Health replicas.Health
	Since  time.Time
	// Answered is true if the replica has answered a probe of this process. Confirmed is true after
	// enough unanswered probes since it became ready.
	Answered, Confirmed bool
}

// answers reports whether clients of the Service can reach the replica and get an answer.
func (r Replica) answers() bool {
	return r.Health == replicas.Serving && r.Ready && !r.Terminating
}

// unreachable reports whether the Service routes clients to the replica and it does not answer. A
// starting replica is not unreachable: it has never answered, or has too few probes since it became
// ready.
func (r Replica) unreachable() bool {
	return r.Health == replicas.Unreachable && r.Answered && r.Confirmed && r.Ready && !r.Terminating
}

// answersProbes reports whether the replica answers probes, whether or not the Service routes clients to
// it.
func (r Replica) answersProbes() bool {
	return r.Health == replicas.Serving && r.Phase != corev1.PodFailed
}

// rank returns the rank of a replica for the clients of the Service; higher is better.
func (r Replica) rank() int {
	switch {
	case r.Terminating:
		return 0
	case !r.Ready:
		return 1
	default:
		return 2
	}
}

// Node is a node of the cluster.
type Node struct {
	// Zone is the region and the zone of the node.
	Zone string
	// Ready is the Ready condition, and Since is when it last changed.
	Ready corev1.ConditionStatus
	Since time.Time
	// Renewed is when the kubelet's Lease was last seen to change, or was first seen. It uses the
	// clock of this process, because the node's clock may be wrong. Zero if unknown.
	Renewed time.Time
	// Gone is true if the node does not exist.
	Gone bool
}

// Mark records the marks of an unreachable replica by this process.
type Mark struct {
	// UnreachableSince is when the replica stopped answering. Counting restarts when it stops answering again.
	UnreachableSince time.Time
	// Count is the number of marks since then, and Last is the time of the last one.
	Count int
	Last  time.Time
}

// Target identifies an action on a pod.
type Target struct {
	UID  types.UID
	Verb Verb
}

// Attempt is the result of an action whose effect is not visible yet.
type Attempt struct {
	Catalog types.NamespacedName
	// Last is the time of the last attempt.
	Last time.Time
	// Refusals is the number of consecutive failures.
	Refusals int
}

// pause returns how long to wait before the next attempt. The pause is long after an accepted
// request, because a pod with a finalizer remains until the finalizer is removed.
func (a Attempt) pause() time.Duration {
	if a.Refusals == 0 {
		return longestPause
	}
	return apply.Backoff{First: firstPause, Max: longestPause}.After(a.Refusals)
}

// Limits limit how fast the controller acts on pods.
type Limits struct {
	// Rate is the number of actions per second. Burst is the number of actions at once after an
	// idle time.
	Rate  float64
	Burst int
}

// Decision is the result of Decide.
type Decision struct {
	Actions []Action
	// Held counts the actions that are held back, by reason.
	Held map[Hold]int
	// Budget is the remaining budget.
	Budget Budget
	// RequeueAfter is when to decide again without an event; zero for never.
	RequeueAfter time.Duration
}

// Verb is a kind of action.
type Verb string

// Values of Verb.
const (
	// MarkNotReady sets the pod's condition Ready to False.
	MarkNotReady Verb = "mark"
	// MarkReady reverts that.
	MarkReady Verb = "unmark"
	// Delete deletes the pod without grace.
	Delete Verb = "delete"
)

// Reason is the reason for an action.
type Reason string

// Values of Reason.
const (
	// ReplicaUnreachable means that the replica does not answer while another one does.
	ReplicaUnreachable Reason = api.ReasonReplicaUnreachable
	// ReplicaAnswers means that the replica answers again.
	ReplicaAnswers Reason = "ReplicaAnswers"
	// NodeNotReady means that the pod's node is not ready.
	NodeNotReady Reason = "NodeNotReady"
	// NodeGone means that the pod's node does not exist any more.
	NodeGone Reason = "NodeGone"
	// Disrupted means that the pod's deletion was announced but did not happen.
	Disrupted Reason = "PodDisrupted"
	// Failed means that the pod has ended and does not run again.
	Failed Reason = "PodFailed"
)

// Hold is the reason for holding back an action.
type Hold string

// Values of Hold.
const (
	// RateLimited means that the rate limit is reached.
	RateLimited Hold = "RateLimit"
	// ZoneDisrupted means that most nodes of a zone are not ready. The cause may not be the nodes
	// themselves.
	ZoneDisrupted Hold = "ZoneDisrupted"
	// NoNodeReady means that no node could run a replacement pod.
	NoNodeReady Hold = "NoNodeReady"
	// CutOff means that this process itself may be disconnected from the replicas.
	CutOff Hold = "CutOff"
	// LastAnswering means that no other replica of the catalog answers yet.
	LastAnswering Hold = "LastAnswering"
	// Backoff means that the same action recently failed or had no effect.
	Backoff Hold = "Backoff"
)

// Holds returns all values of Hold.
func Holds() []Hold {
	return []Hold{RateLimited, ZoneDisrupted, NoNodeReady, CutOff, LastAnswering, Backoff}
}

// Action is one action on one pod.
type Action struct {
	Verb    Verb
	Reason  Reason
	Catalog types.NamespacedName
	Replica Replica
	// Message explains the action to users.
	Message string
}

func (a Action) target() Target { return Target{UID: a.Replica.UID, Verb: a.Verb} }
